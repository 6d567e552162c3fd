// SPDX-License-Identifier: BSD-3-Clause
// What people type first and what does not work; see ../near_misses, which compiles each case in a
// function of its own.
#include <complex>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <rankmesh/rankmesh.hpp>

#include <rankmesh/exchange/bucket.hpp>
#include <rankmesh/exchange/checkpoint.hpp>
#include <rankmesh/exchange/kept_tensors.hpp>
#include <rankmesh/exchange/sharded_buffer.hpp>
#include <rankmesh/exchange/stage_exchange.hpp>
#include <rankmesh/helpers/broadcast_parameters.hpp>

using namespace rankmesh;

struct Particle {
  double x, y, z;
  int cell;
};
enum class Colour { red, green };
struct Field {  // of another library
  std::vector<float> cells;
};
struct Sum {  // of two arrays of another library
  const float *a, *b;
};
template <>
inline constexpr bool rankmesh::refers_to_arrays<Sum> = true;
struct FieldView {
  float* data_handle() const;
  int size;
};

void use(Mesh& mesh, std::vector<float> values, const std::vector<float>& constant) {
  GroupCoordinator& tp = mesh["tp"];
  std::vector<double> doubles(4);
  std::vector<Particle> particles(4);
  DeviceSpan<float> device{nullptr, 4};
  void* stream = nullptr;
  const std::vector<std::int64_t> counts{1, 2};

#if CASE == 0
  // What the messages say.
  tp.all_reduce(std::span{values.data(), 4});
  tp.all_reduce(particles, [](const Particle& a, const Particle&) { return a; });
  tp.all_reduce(device, ReduceOp::max, stream);
  tp.all_reduce(device, stream);
  tp.all_gather(particles, particles);
  tp.reduce_scatter_v(values, doubles.empty() ? values : values, counts);
  tp.reduce_scatter_v(values, values, Blocks::even(4, tp));
  Mesh other{MPI_COMM_WORLD, "tp=2", {.deadline = std::chrono::seconds{5}}};
  tp.send_recv(values, values, next, prev);
  tp.broadcast(values, *tp.ranks().index_of(Rank{0}));
  double loss = 1;
  tp.all_reduce(loss);
  const auto scanned = tp.scan(std::vector<float>(4));
  const auto offsets = tp.exscan(std::vector<int>(4), [](int a, int b) { return a + b; });
  tp.all_reduce_async(loss).wait();
  static_cast<void>(tp.all_reduce(constant.front()));
  static_cast<void>(mesh.new_group({0, 1}));
  static_cast<void>(mesh.new_group(std::vector<int>{0, 1}, "pair"));
  static_cast<void>(mesh.new_groups(std::vector<std::vector<int>>{{0, 1}, {2}}));
  tp.all_gather(values, values, Axis{{2, 2}, 1});
  tp.all_gather(values, values, {{4}, 0});
  rankmesh::exchange::Bucket bucket{tp};
  bucket.add(std::span{values.data(), 4});
  bucket.add(constant, values);
  rankmesh::exchange::ShardedBuffer<float> sharded{tp, {4, 4}, {.bytes = 16}};
  sharded.load(0, std::span{values.data(), 4});
  auto x = tp.all_reduce(std::vector(values));
  x = tp.broadcast(std::vector(values), 0);
  tp.gather(values, std::span<float>{}, 0);
  tp.gather(values, values, {});
  x = tp.gather(values, {});
  tp.reduce(values, {}, ReduceOp::max);
  tp.gather_v(values, values, {1, 2}, 0);
  x = tp.gather_v(values, {}).values;
  x = tp.scatter_v(values, {1, 2}, 0);
  x = tp.reduce_scatter_v(values, {1, 2}, ReduceOp::max);
  x = tp.all_to_all_v(values, {1, 2}).values;
  tp.all_to_all_v(values, x, {1, 2}, {2, 1});
  x = std::vector<float>(values.begin() + tp.rank_in_group().to_int(), values.end());
  rankmesh::exchange::StageExchange stages{tp, {.ring = true}};
  stages.run(
      {rankmesh::exchange::to_next(std::vector<float>(4)), rankmesh::exchange::from_prev(x)});
  const SlicedAxis axes[] = {{{13, 4}, 0, tp}, {{13, 4}, 0, 2}, {{13, 4}, 1, counts}};
  const Slice parts[] = {
      {10, tp}, Slice::of(10, 2, 1), axes[0].rows() > 0 ? Slice{4L, tp} : Slice{4, tp}};
  static_cast<void>(parts);
  const auto place = TensorPlacement::parse("[4] f32 @ tp=2 : (tp)");
  rankmesh::exchange::save_checkpoint(tp, "folder", "name", {{"x", place, values}});
  rankmesh::exchange::load_checkpoint(tp, "folder", {{"x", place, values}, {"y", place, values}});
#endif

// case 1: a pointer and a number of elements: write std::span\{pointer, n\}
#if CASE == 1
  tp.all_reduce(values.data(), 4);
#endif
// case 2: the address of a container: write std::span\{pointer, n\}
#if CASE == 2
  tp.broadcast(&values, 0);
#endif
// case 3: a smart pointer: std::span\{pointer.get\(\), n\}
#if CASE == 3
  auto owned = std::make_unique<float[]>(4);
  tp.all_reduce(owned);
#endif
// case 4: packed bits: use std::vector<char> or std::array<bool, n>
#if CASE == 4
  std::vector<bool> flags(4);
  tp.all_reduce(flags);
#endif
// case 5: a list: elements must be contiguous
#if CASE == 5
  std::list<float> list(4);
  auto all = tp.all_gather(list);
#endif
// case 6: strings: all_gather_objects
#if CASE == 6
  std::vector<std::string> names(4);
  auto all = tp.all_gather(names);
#endif
// case 7: a vector of vectors: flatten them
#if CASE == 7
  std::vector<std::vector<float>> rows(4);
  tp.all_reduce(rows);
#endif
// case 8: a sum of structs: pass a function T f
#if CASE == 8
  tp.all_reduce(particles);
#endif
// case 9: a sum of enumerators: pass a function T f
#if CASE == 9
  Colour colour{};
  tp.all_reduce(colour);
#endif
// case 10: constant values in place: as in all_reduce\(in, out\)
#if CASE == 10
  tp.all_reduce(constant);
#endif
// case 11: receiving into constant values: pass values that are not const
#if CASE == 11
  tp.recv(constant, prev);
#endif
// case 12: a constant output: the output is const
#if CASE == 12
  tp.all_gather(values, constant);
#endif
// case 13: two element types: the same element type
#if CASE == 13
  tp.all_gather(values, doubles);
#endif
// case 14: host and device memory: both be host memory, or both a DeviceSpan
#if CASE == 14
  tp.all_gather(values, device);
#endif
// case 15: a rank of the world as the root: write \*group.ranks\(\).index_of\(rank\)
#if CASE == 15
  tp.broadcast(values, mesh.rank());
#endif
// case 16: a rank of the world as the other member: write \*group.ranks\(\).index_of\(rank\)
#if CASE == 16
  tp.send(values, tp.next_rank());
#endif
// case 17: no root: write broadcast\(values, root\)
#if CASE == 17
  tp.broadcast(values);
#endif
// case 18: the stream before the reduction: the stream is the last argument
#if CASE == 18
  tp.all_reduce(device, stream, ReduceOp::max);
#endif
// case 19: the counts before the output: write \(in, out, counts, ...\)
#if CASE == 19
  tp.reduce_scatter_v(values, counts, values);
#endif
// case 20: the axis after the root: write \(in, out, axis, root\)
#if CASE == 20
  tp.gather(values, values, 0, Axis({2, 2}, 1));
#endif
// case 21: the receiver between the buffers: write send_recv\(in, out, to, from, tag\)
#if CASE == 21
  tp.send_recv(values, next, values, prev);
#endif
// case 22: counts as in MPI: write all_gather\(in, out\)
#if CASE == 22
  tp.all_gather(values, 4, values, 4);
#endif
// case 23: the operation by its name: op is a ReduceOp or a function
#if CASE == 23
  tp.all_reduce(values, "max");
#endif
// case 24: a result in device memory: pass a DeviceSpan as the output
#if CASE == 24
  auto all = tp.all_gather(device);
#endif
// case 25: a function on device memory: functions combine host memory only
#if CASE == 25
  tp.all_reduce(device, [](float a, float b) { return a + b; });
#endif
// case 26: an asynchronous operation on a temporary: pass a variable
#if CASE == 26
  auto work = tp.all_reduce_async(1.0);
#endif
// case 27: a copy of a coordinator: auto& tp = mesh
#if CASE == 27
  auto copy = mesh["tp"];
#endif
// case 29: no communicator: Mesh\{MPI_COMM_WORLD, "tp=8"\}
#if CASE == 29
  Mesh other{"pp=2,tp=2"};
#endif
// case 30: a scan of strings: trivially copyable
#if CASE == 30
  std::vector<std::string> words(4);
  tp.scan(words);
#endif
// case 31: a list in braces: write std::array
#if CASE == 31
  tp.all_reduce({1, 2, 3});
#endif
// case 32: receiving a vector of unknown size: recv_object
#if CASE == 32
  auto received = tp.recv<std::vector<float>>(prev);
#endif
// case 33: the reduction first: write all_reduce\(values, op\)
#if CASE == 33
  tp.all_reduce(ReduceOp::sum, values);
#endif
// case 34: a number of seconds: write wait\(std::chrono::seconds\{3\}\)
#if CASE == 34
  tp.all_reduce_async(values).wait(3);
#endif
// case 35: ranks that are no list: write new_group\(\{0, 1\}\)
#if CASE == 35
  mesh.new_group(0, 1);
#endif
// case 36: moves without braces: write run\(\{to_next\(a\), from_prev\(b\)\}, stream\)
#if CASE == 36
  namespace exchange = rankmesh::exchange;
  exchange::StageExchange{tp}.run(exchange::to_next(values), exchange::from_prev(values));
#endif
// case 37: receiving into a temporary: pass a variable
#if CASE == 37
  rankmesh::exchange::from_prev(std::vector<float>(4));
#endif
// case 38: an operation of a mesh: a mesh is no group: call the operation on mesh\[
#if CASE == 38
  mesh.all_reduce(values);
#endif
// case 39: a returned result of a mesh: world.*for all ranks
#if CASE == 39
  auto all = mesh.all_gather(values);
#endif
// case 40: a value received from a mesh: a mesh is no group
#if CASE == 40
  auto received = mesh.recv<float>(prev);
#endif
// case 41: an asynchronous operation of a mesh: a mesh is no group
#if CASE == 41
  mesh.all_reduce_async(values).wait();
#endif
// case 42: the result of an operation in place: has incomplete type
#if CASE == 42
  // The compilers themselves say this, in one line. Operations in place return void, so that
  // functions without a result can contain `return tp.all_reduce(values);`.
  auto x = tp.all_reduce(values);
#endif
// case 43: receiving into a temporary container: pass a variable
#if CASE == 43
  tp.recv(std::vector<float>(4), prev);
#endif
// case 44: receiving into a temporary container if something has arrived: pass a variable
#if CASE == 44
  auto has_received = tp.try_recv(std::vector<float>(4), prev);
#endif
// case 45: parameters of a temporary container: pass a variable
#if CASE == 45
  rankmesh::broadcast_parameters(mesh, std::vector<float>(4), "dp");
#endif
// case 46: counts in place of an output: write all_gather_v\(in, out, counts\)
#if CASE == 46
  tp.all_gather_v(values, std::vector<int>{1, 2});
#endif
// case 47: the number of a group: deleted
#if CASE == 47
  mesh[0].barrier();
#endif
// case 28: an unknown form of an asynchronous operation: write reduce\(values, root, op\)
#if CASE == 28
  auto work = tp.reduce_async(values);
  work.wait();
#endif
// case 48: a rank times a number: to_int\(\)
#if CASE == 48
  const auto first = tp.rank_in_group() * 4;
#endif
// case 49: an even rank: to_int\(\)
#if CASE == 49
  if (mesh.rank() % 2 == 0) return;
#endif
// case 50: an offset into memory: to_int\(\)
#if CASE == 50
  float* first = values.data() + tp.rank_in_group();
#endif
// case 51: the iterator of an element: to_int\(\)
#if CASE == 51
  auto first = values.begin() + tp.rank_in_group();
#endif
// case 52: the distance of two ranks: to_int\(\)
#if CASE == 52
  const auto distance = mesh.rank() - Rank{0};
#endif
// case 53: the rank behind a rank: to_int\(\)
#if CASE == 53
  Rank other = mesh.rank();
  ++other;
#endif
// case 54: the sum of two kinds of ranks: to_int\(\)
#if CASE == 54
  const auto sum = mesh.rank() + tp.rank_in_group();
#endif
// case 55: braces for an output that is ignored: pass std::span<float>\{\} where the output is
// ignored
#if CASE == 55
  tp.gather(values, {}, 0);
#endif
// case 56: the same for blocks of different sizes: pass std::span<float>\{\} where the output is
// ignored
#if CASE == 56
  tp.gather_v(values, {}, counts, 0);
#endif
// case 57: one list of counts for both buffers: write all_to_all_v\(in, out, in_counts,
// out_counts\)
#if CASE == 57
  tp.all_to_all_v(values, values, counts);
#endif
// case 80: a bucket of a mesh: write Bucket\{mesh\[
#if CASE == 80
  rankmesh::exchange::Bucket bucket{mesh};
#endif
// case 81: a bucket of a shared pointer: or Bucket\{\*group\}
#if CASE == 81
  auto group = mesh.new_group({0, 1});
  rankmesh::exchange::Bucket bucket{group};
#endif
// case 82: a pointer for a bucket: write std::span\{pointer, n\}
#if CASE == 82
  rankmesh::exchange::Bucket{tp}.add(values.data(), values.size());
#endif
// case 83: constant values for a bucket: as in add\(values, mine\)
#if CASE == 83
  rankmesh::exchange::Bucket{tp}.add(constant);
#endif
// case 84: a sharded buffer of a mesh: a ShardedBuffer needs a group
#if CASE == 84
  rankmesh::exchange::ShardedBuffer<float> buffer{mesh, counts};
#endif
// case 85: a sharded buffer of a mesh, sizes in braces: a ShardedBuffer needs a group
#if CASE == 85
  rankmesh::exchange::ShardedBuffer<float> buffer{mesh, {4, 4}, {.bytes = 16}};
#endif
// case 86: a tensor of another type: the element type of the buffer
#if CASE == 86
  rankmesh::exchange::ShardedBuffer<float>{tp, counts}.load(0, doubles);
#endif
// case 87: a pointer for a tensor: write std::span\{pointer, n\}
#if CASE == 87
  rankmesh::exchange::ShardedBuffer<float>{tp, counts}.load(0, values.data(), 4);
#endif
// case 88: no output of gather_v, counts in braces: a list in braces is no output
#if CASE == 88
  tp.gather_v(values, {}, {1, 2}, 0);
#endif
// case 89: no output of all_to_all_v, counts in braces: a list in braces is no output
#if CASE == 89
  tp.all_to_all_v(values, {}, {1, 2}, {1, 2});
#endif
// case 90: one list of counts in braces for both buffers: write all_to_all_v\(in, out, in_counts,
#if CASE == 90
  tp.all_to_all_v(values, values, {1, 2});
#endif
// case 91: counts in braces before the output: the counts come after both buffers
#if CASE == 91
  tp.scatter_v(values, {1, 2}, values, 0);
#endif
// case 92: counts in braces that no form has: a list in braces is no output
#if CASE == 92
  static_cast<void>(tp.all_gather_v(values, {1, 2}));
#endif
// case 93: values and counts in braces: a list in braces is no memory
#if CASE == 93
  tp.scatter_v({}, values, {1, 2}, 0);
#endif
// case 94: no output of all_gather: a list in braces is no output
#if CASE == 94
  tp.all_gather(values, {});
#endif
// case 140: a rank that may be none: write \*group.ranks\(\).index_of\(rank\)
#if CASE == 140
  tp.broadcast(values, tp.ranks().index_of(Rank{0}));
#endif
// case 141: an expression: evaluate it first
#if CASE == 141
  Sum sum{};
  tp.broadcast(sum, 0);
#endif
// case 142: a sum of expressions: evaluate it first
#if CASE == 142
  tp.all_reduce(Sum{});
#endif
// case 143: an axis without its number: write Axis\{\{rows, columns\}, 1\}
#if CASE == 143
  tp.all_gather(values, values, Axis{{2, 2}});
#endif
// case 144: an axis without inner braces: write Axis\{\{rows, columns\}, 1\}
#if CASE == 144
  tp.all_gather(values, values, Axis{2, 2, 1});
#endif
// case 145: a mesh before its communicator: Mesh\{MPI_COMM_WORLD, "tp=8"\}
#if CASE == 145
  Mesh other{"tp=8", MPI_COMM_WORLD};
#endif
// case 146: iterators for ranks: pass a std::vector<int>
#if CASE == 146
  std::vector<int> ranks{0, 1};
  static_cast<void>(mesh.new_group({ranks.begin(), ranks.end()}, "pair"));
#endif
// case 147: texts for ranks: write new_group\(\{0, 1\}\)
#if CASE == 147
  static_cast<void>(mesh.new_group({"0", "1"}));
#endif
// case 110: an array of another library: include its header of rankmesh/adapt/
#if CASE == 110
  Field field;
  tp.all_reduce(field);
#endif
// case 111: such an array as an output: specialise rankmesh::MemoryOf
#if CASE == 111
  Field field;
  tp.all_gather(values, field);
#endif
// case 112: a view of another library: specialise rankmesh::MemoryOf
#if CASE == 112
  FieldView view{};
  tp.broadcast(view, 0);
#endif
// case 113: a pointer as the output: write std::span\{pointer, n\}
#if CASE == 113
  tp.all_reduce(values, values.data());
#endif
// case 114: the operation of MPI: op is a ReduceOp or a function
#if CASE == 114
  tp.all_reduce(values, MPI_MAX);
#endif
// case 115: the address of a tag: write send\(values, to, tag\)
#if CASE == 115
  int tag = 3;
  tp.send(values, 1, &tag);
#endif
// case 116: counts in place of an output, in braces: a list in braces is no output
#if CASE == 116
  tp.gather_v(values, {1, 2});
#endif
// case 117: neither values nor output of scatter_v: there are no values
#if CASE == 117
  tp.scatter_v({}, {}, counts, 0);
#endif
// case 118: neither values nor output of scatter_v, counts in braces: there are no values
#if CASE == 118
  tp.scatter_v({}, {}, {1, 2}, 0);
#endif
// case 119: a slice in place of counts: write Blocks::even\(n, group\)
#if CASE == 119
  tp.reduce_scatter_v(values, values, Slice{4, tp});
#endif
// case 120: a number as a deadline: write std::chrono::seconds\{5\}
#if CASE == 120
  Mesh other{MPI_COMM_WORLD, "tp=2", {.deadline = 5}};
#endif
// case 121: a number as a time limit, assigned: write std::chrono::seconds\{5\}
#if CASE == 121
  MeshOptions options;
  options.timeout = 2.5;
#endif
// case 122: no output of reduce: pass std::span<float>\{\} where the output is ignored
#if CASE == 122
  tp.reduce(values, {}, 0);
#endif
// case 123: no output of send_recv: a list in braces is no output
#if CASE == 123
  tp.send_recv(values, {}, next, prev);
#endif
// case 124: a pointer that is sent to the next stage: pass a container of numbers, or std::span
#if CASE == 124
  rankmesh::exchange::to_next(values.data());
#endif
// case 125: constant values that are received: pass a container of numbers that is not const
#if CASE == 125
  rankmesh::exchange::from_prev(constant);
#endif
// case 126: a temporary container in moves that do not block: pass a variable, or write run
#if CASE == 126
  rankmesh::exchange::StageExchange{tp}
      .start({rankmesh::exchange::to_next(std::vector<float>(4))})
      .wait();
#endif
// case 127: a temporary container as a tensor: pass a variable
#if CASE == 127
  rankmesh::exchange::TensorSource source{std::vector<float>(4)};
#endif
// case 128: a slice of a number of members: Slice::of\(n, members, k\)
#if CASE == 128
  const Slice part{10, 2, 1};
#endif
// case 129: the group before the axis: write SlicedAxis\{shape, axis, group\}
#if CASE == 129
  const SlicedAxis axis{{13, 4}, tp, 0};
#endif
// case 130: a shape without braces: write SlicedAxis\{\{rows, columns\}, axis, group\}
#if CASE == 130
  const SlicedAxis axis{13, 4, 0, tp};
#endif
// case 131: an option without its name: write \{.ring = true\}
#if CASE == 131
  rankmesh::exchange::StageExchange stages{tp, true};
#endif
// case 132: data without a name and a place: \{\{"name", place, data\}\}
#if CASE == 132
  exchange::KeptTensors{}.keep(tp, 0, values);
#endif
// case 133: a tensor outside of a list: write a list: \{\{...\}\}
#if CASE == 133
  const auto place = TensorPlacement::parse("[8] f32 @ tp=2 : (tp)");
  exchange::KeptTensors{}.keep(tp, 0, {"values", place, values});
#endif
// case 134: the step before the group: the group comes first
#if CASE == 134
  const auto place = TensorPlacement::parse("[8] f32 @ tp=2 : (tp)");
  exchange::KeptTensors{}.keep(0, tp, {{"values", place, values}});
#endif
}
