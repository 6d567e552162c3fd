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

  // case 0: what the messages say
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
  // case: a pointer and a number of elements: write std::span\{pointer, n\}
  tp.all_reduce(values.data(), 4);
  // case: the address of a container: write std::span\{pointer, n\}
  tp.broadcast(&values, 0);
  // case: a smart pointer: std::span\{pointer.get\(\), n\}
  auto owned = std::make_unique<float[]>(4);
  tp.all_reduce(owned);
  // case: packed bits: use std::vector<char> or std::array<bool, n>
  std::vector<bool> flags(4);
  tp.all_reduce(flags);
  // case: a list: elements must be contiguous
  std::list<float> list(4);
  auto all = tp.all_gather(list);
  // case: strings: all_gather_objects
  std::vector<std::string> names(4);
  auto all = tp.all_gather(names);
  // case: a vector of vectors: flatten them
  std::vector<std::vector<float>> rows(4);
  tp.all_reduce(rows);
  // case: a sum of structs: pass a function T f
  tp.all_reduce(particles);
  // case: a sum of enumerators: pass a function T f
  Colour colour{};
  tp.all_reduce(colour);
  // case: constant values in place: as in all_reduce\(in, out\)
  tp.all_reduce(constant);
  // case: receiving into constant values: pass values that are not const
  tp.recv(constant, prev);
  // case: a constant output: the output is const
  tp.all_gather(values, constant);
  // case: two element types: the same element type
  tp.all_gather(values, doubles);
  // case: host and device memory: both be host memory, or both a DeviceSpan
  tp.all_gather(values, device);
  // case: a rank of the world as the root: write \*group.ranks\(\).index_of\(rank\)
  tp.broadcast(values, mesh.rank());
  // case: a rank of the world as the other member: write \*group.ranks\(\).index_of\(rank\)
  tp.send(values, tp.next_rank());
  // case: no root: write broadcast\(values, root\)
  tp.broadcast(values);
  // case: the stream before the reduction: the stream is the last argument
  tp.all_reduce(device, stream, ReduceOp::max);
  // case: the counts before the output: write \(in, out, counts, ...\)
  tp.reduce_scatter_v(values, counts, values);
  // case: the axis after the root: write \(in, out, axis, root\)
  tp.gather(values, values, 0, Axis({2, 2}, 1));
  // case: the receiver between the buffers: write send_recv\(in, out, to, from, tag\)
  tp.send_recv(values, next, values, prev);
  // case: counts as in MPI: write all_gather\(in, out\)
  tp.all_gather(values, 4, values, 4);
  // case: the operation by its name: op is a ReduceOp or a function
  tp.all_reduce(values, "max");
  // case: a result in device memory: pass a DeviceSpan as the output
  auto all = tp.all_gather(device);
  // case: a function on device memory: functions combine host memory only
  tp.all_reduce(device, [](float a, float b) { return a + b; });
  // case: an asynchronous operation on a temporary: pass a variable
  auto work = tp.all_reduce_async(1.0);
  // case: a copy of a coordinator: auto& tp = mesh
  auto copy = mesh["tp"];
  // case: no communicator: Mesh\{MPI_COMM_WORLD, "tp=8"\}
  Mesh other{"pp=2,tp=2"};
  // case: a list of views: call the operation for each of them
  tp.all_reduce(std::vector<DeviceSpan<float>>{device, device});
  // case: a scan of strings: trivially copyable
  std::vector<std::string> words(4);
  tp.scan(words);
  // case: a list in braces: write std::array
  tp.all_reduce({1, 2, 3});
  // case: receiving a vector of unknown size: recv_object
  auto received = tp.recv<std::vector<float>>(prev);
  // case: the reduction first: write all_reduce\(values, op\)
  tp.all_reduce(ReduceOp::sum, values);
  // case: a number of seconds: write wait\(std::chrono::seconds\{3\}\)
  tp.all_reduce_async(values).wait(3);
  // case: ranks that are no list: write new_group\(\{0, 1\}\)
  mesh.new_group(0, 1);
  // case: moves without braces: write run\(\{to_next\(a\), from_prev\(b\)\}, stream\)
  namespace exchange = rankmesh::exchange;
  exchange::StageExchange{tp}.run(exchange::to_next(values), exchange::from_prev(values));
  // case: receiving into a temporary: pass a variable
  rankmesh::exchange::from_prev(std::vector<float>(4));
  // case: an operation of a mesh: a mesh is no group: call the operation on mesh\[
  mesh.all_reduce(values);
  // case: a returned result of a mesh: world.*for all ranks
  auto all = mesh.all_gather(values);
  // case: a value received from a mesh: a mesh is no group
  auto received = mesh.recv<float>(prev);
  // case: an asynchronous operation of a mesh: a mesh is no group
  mesh.all_reduce_async(values).wait();
  // case: the result of an operation in place: has incomplete type
  // The compilers themselves say this, in one line. Operations in place return void, so that
  // functions without a result can contain `return tp.all_reduce(values);`.
  auto x = tp.all_reduce(values);
  // case: receiving into a temporary container: pass a variable
  tp.recv(std::vector<float>(4), prev);
  // case: receiving into a temporary container if something has arrived: pass a variable
  auto has_received = tp.try_recv(std::vector<float>(4), prev);
  // case: parameters of a temporary container: pass a variable
  rankmesh::broadcast_parameters(mesh, std::vector<float>(4), "dp");
  // case: counts in place of an output: write all_gather_v\(in, out, counts\)
  tp.all_gather_v(values, std::vector<int>{1, 2});
  // case: the number of a group: deleted
  mesh[0].barrier();
  // case: an unknown form of an asynchronous operation: write reduce\(values, root, op\)
  auto work = tp.reduce_async(values);
  work.wait();
  // case: a rank times a number: to_int\(\)
  const auto first = tp.rank_in_group() * 4;
  // case: an even rank: to_int\(\)
  if (mesh.rank() % 2 == 0) return;
  // case: an offset into memory: to_int\(\)
  float* first = values.data() + tp.rank_in_group();
  // case: the iterator of an element: to_int\(\)
  auto first = values.begin() + tp.rank_in_group();
  // case: the distance of two ranks: to_int\(\)
  const auto distance = mesh.rank() - Rank{0};
  // case: the rank behind a rank: to_int\(\)
  Rank other = mesh.rank();
  ++other;
  // case: the sum of two kinds of ranks: to_int\(\)
  const auto sum = mesh.rank() + tp.rank_in_group();
  // case: braces for an output that is ignored: pass std::span<float>\{\} where
  tp.gather(values, {}, 0);
  // case: the same for blocks of different sizes: pass std::span<float>\{\} where
  tp.gather_v(values, {}, counts, 0);
  // case: one list of counts for both buffers: write all_to_all_v\(in, out, in_counts, out_counts\)
  tp.all_to_all_v(values, values, counts);
  // case: a bucket of a mesh: write Bucket\{mesh\[
  rankmesh::exchange::Bucket bucket{mesh};
  // case: a bucket of a shared pointer: or Bucket\{\*group\}
  auto group = mesh.new_group({0, 1});
  rankmesh::exchange::Bucket bucket{group};
  // case: a pointer for a bucket: write std::span\{pointer, n\}
  rankmesh::exchange::Bucket{tp}.add(values.data(), values.size());
  // case: constant values for a bucket: as in add\(values, mine\)
  rankmesh::exchange::Bucket{tp}.add(constant);
  // case: a sharded buffer of a mesh: a ShardedBuffer needs a group
  rankmesh::exchange::ShardedBuffer<float> buffer{mesh, counts};
  // case: a sharded buffer of a mesh, sizes in braces: a ShardedBuffer needs a group
  rankmesh::exchange::ShardedBuffer<float> buffer{mesh, {4, 4}, {.bytes = 16}};
  // case: a tensor of another type: the element type of the buffer
  rankmesh::exchange::ShardedBuffer<float>{tp, counts}.load(0, doubles);
  // case: a pointer for a tensor: write std::span\{pointer, n\}
  rankmesh::exchange::ShardedBuffer<float>{tp, counts}.load(0, values.data(), 4);
  // case: no output of gather_v, counts in braces: a list in braces is no output
  tp.gather_v(values, {}, {1, 2}, 0);
  // case: no output of all_to_all_v, counts in braces: a list in braces is no output
  tp.all_to_all_v(values, {}, {1, 2}, {1, 2});
  // case: one list of counts in braces for both buffers: write all_to_all_v\(in, out, in_counts,
  tp.all_to_all_v(values, values, {1, 2});
  // case: counts in braces before the output: the counts come after both buffers
  tp.scatter_v(values, {1, 2}, values, 0);
  // case: counts in braces that no form has: a list in braces is no output
  static_cast<void>(tp.all_gather_v(values, {1, 2}));
  // case: values and counts in braces: a list in braces is no memory
  tp.scatter_v({}, values, {1, 2}, 0);
  // case: no output of all_gather: a list in braces is no output
  tp.all_gather(values, {});
  // case: a rank that may be none: write \*group.ranks\(\).index_of\(rank\)
  tp.broadcast(values, tp.ranks().index_of(Rank{0}));
  // case: an expression: evaluate it first
  Sum sum{};
  tp.broadcast(sum, 0);
  // case: a sum of expressions: evaluate it first
  tp.all_reduce(Sum{});
  // case: an axis without its number: write Axis\{\{rows, columns\}, 1\}
  tp.all_gather(values, values, Axis{{2, 2}});
  // case: an axis without inner braces: write Axis\{\{rows, columns\}, 1\}
  tp.all_gather(values, values, Axis{2, 2, 1});
  // case: a mesh before its communicator: Mesh\{MPI_COMM_WORLD, "tp=8"\}
  Mesh other{"tp=8", MPI_COMM_WORLD};
  // case: iterators for ranks: pass a std::vector<int>
  std::vector<int> ranks{0, 1};
  static_cast<void>(mesh.new_group({ranks.begin(), ranks.end()}, "pair"));
  // case: texts for ranks: write new_group\(\{0, 1\}\)
  static_cast<void>(mesh.new_group({"0", "1"}));
  // case: an array of another library: include its header of rankmesh/adapt/
  Field field;
  tp.all_reduce(field);
  // case: such an array as an output: specialise rankmesh::MemoryOf
  Field field;
  tp.all_gather(values, field);
  // case: a view of another library: specialise rankmesh::MemoryOf
  FieldView view{};
  tp.broadcast(view, 0);
  // case: a pointer as the output: write std::span\{pointer, n\}
  tp.all_reduce(values, values.data());
  // case: the operation of MPI: op is a ReduceOp or a function
  tp.all_reduce(values, MPI_MAX);
  // case: the address of a tag: write send\(values, to, tag\)
  int tag = 3;
  tp.send(values, 1, &tag);
  // case: counts in place of an output, in braces: a list in braces is no output
  tp.gather_v(values, {1, 2});
  // case: neither values nor output of scatter_v: there are no values
  tp.scatter_v({}, {}, counts, 0);
  // case: neither values nor output of scatter_v, counts in braces: there are no values
  tp.scatter_v({}, {}, {1, 2}, 0);
  // case: a slice in place of counts: write Blocks::even\(n, group\)
  tp.reduce_scatter_v(values, values, Slice{4, tp});
  // case: a number as a deadline: write std::chrono::seconds\{5\}
  Mesh other{MPI_COMM_WORLD, "tp=2", {.deadline = 5}};
  // case: a number as a time limit, assigned: write std::chrono::seconds\{5\}
  MeshOptions options;
  options.timeout = 2.5;
  // case: no output of reduce: pass std::span<float>\{\} where the output is ignored
  tp.reduce(values, {}, 0);
  // case: no output of send_recv: a list in braces is no output
  tp.send_recv(values, {}, next, prev);
  // case: a pointer that is sent to the next stage: pass a container of numbers, or std::span
  rankmesh::exchange::to_next(values.data());
  // case: constant values that are received: pass a container of numbers that is not const
  rankmesh::exchange::from_prev(constant);
  // case: a temporary container in moves that do not block: pass a variable, or write run
  rankmesh::exchange::StageExchange{tp}
      .start({rankmesh::exchange::to_next(std::vector<float>(4))})
      .wait();
  // case: a temporary container as a tensor: pass a variable
  rankmesh::exchange::TensorSource source{std::vector<float>(4)};
  // case: a slice of a number of members: Slice::of\(n, members, k\)
  const Slice part{10, 2, 1};
  // case: the group before the axis: write SlicedAxis\{shape, axis, group\}
  const SlicedAxis axis{{13, 4}, tp, 0};
  // case: a shape without braces: write SlicedAxis\{\{rows, columns\}, axis, group\}
  const SlicedAxis axis{13, 4, 0, tp};
  // case: an option without its name: write \{.ring = true\}
  rankmesh::exchange::StageExchange stages{tp, true};
  // case: data without a name and a place: \{\{"name", place, data\}\}
  exchange::KeptTensors{}.keep(tp, 0, values);
  // case: a tensor outside of a list: write a list: \{\{...\}\}
  const auto place = TensorPlacement::parse("[8] f32 @ tp=2 : (tp)");
  exchange::KeptTensors{}.keep(tp, 0, {"values", place, values});
  // case: the step before the group: the group comes first
  const auto place = TensorPlacement::parse("[8] f32 @ tp=2 : (tp)");
  exchange::KeptTensors{}.keep(0, tp, {{"values", place, values}});
  // case: run of a group: a group has no run\(\)
  tp.run();
  // case: texts for a transfer: TensorPlacement::parse\(from\)
  auto plan = plan_transfer("[4] f32 @ x=2 : (x)", "[4] f32 @ x=2 : (_)");
  // case: a list in braces that is sent to the next stage: write std::vector\{1.0, 2.0\}
  rankmesh::exchange::StageExchange{tp}.run({rankmesh::exchange::to_next({1.0, 2.0})});
  // case: a number that is sent to the next stage: pass a container of numbers, or std::span
  rankmesh::exchange::StageExchange{tp}.send_forward(1.0);
  // case: a stage exchange of a mesh: write StageExchange\{mesh
  rankmesh::exchange::StageExchange stages{mesh};
}
