// SPDX-License-Identifier: BSD-3-Clause
// Tensors in device memory move between places. The results are compared with the definition of a
// place, element by element.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "device/test_platform.hpp"
#include "exchange/placed_tensors.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/machine/read_machine.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "transfer/random_place.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using exchange::Redistribution;
using exchange::TensorSource;
using exchange::TensorTarget;
using rankmesh_test::fill;
using rankmesh_test::Local;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;
using test_platform::on_device;

namespace {

// A tensor of this rank: its device memory, and a copy in host memory.
struct Placed {
  explicit Placed(const TensorPlacement& place, std::int64_t gap = 0)
      : local{place, gap}, memory{local.memory.size()} {}
  void upload(StreamRef stream) { memory.upload(local.memory, stream); }
  void download(StreamRef stream) { local.memory = memory.download(stream); }
  [[nodiscard]] TensorSource source() {
    TensorSource result = local.source();
    result.memory.data = memory.data();
    result.memory.kind = MemoryKind::device;
    return result;
  }
  [[nodiscard]] TensorTarget target() {
    TensorTarget result = local.target();
    result.memory.data = memory.data();
    result.memory.kind = MemoryKind::device;
    return result;
  }
  Local local;
  DeviceBuffer<std::byte> memory;
};

struct Options {
  std::int64_t memory = 1 << 20;
  const Machine* machine = nullptr;
  std::int64_t source_gap = 0, target_gap = 0;
};

void check_moves(GroupCoordinator& group, const std::vector<TensorTransfer>& tensors,
                 const Options& options = {}) {
  const Stream stream = Stream::create();
  Redistribution move{group,
                      plan_transfer(tensors, options.machine),
                      {.kind = MemoryKind::device, .memory = options.memory}};
  std::vector<Placed> sources, targets;
  for (const TensorTransfer& tensor : tensors) {
    sources.emplace_back(tensor.from, options.source_gap);
    targets.emplace_back(tensor.to, options.target_gap);
  }
  for (int round = 0; round < 2; ++round) {
    std::vector<TensorSource> in;
    std::vector<TensorTarget> out;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      fill(tensors[t].from, sources[t].local, round);
      sources[t].upload(stream);
      targets[t].upload(stream);
      in.push_back(sources[t].source());
      out.push_back(targets[t].target());
    }
    move.start(in, out, stream).wait();
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const auto before = targets[t].local;
      targets[t].download(stream);
      rankmesh_test::check(tensors[t].to, targets[t].local, round);
      // The elements between the rows are unchanged.
      for (std::int64_t i = 0; i < targets[t].local.count; ++i)
        std::copy_n(const_cast<Local&>(before).at(i), size_of(before.type), targets[t].local.at(i));
      CHECK(targets[t].local.memory == before.memory);
    }
  }
}

// "N" stands for the number of ranks, "L" for the last rank, "H" for half of the ranks.
TensorPlacement place(std::string text) {
  const auto replace = [&](char letter, int number) {
    for (std::size_t at = text.find(letter); at != std::string::npos; at = text.find(letter))
      text.replace(at, 1, std::to_string(number));
  };
  replace('N', size());
  replace('L', size() - 1);
  replace('H', std::max(1, size() / 2));
  return TensorPlacement::parse(text);
}
TensorTransfer transfer(const std::string& from, const std::string& to) {
  return {place(from), place(to)};
}

const std::vector<std::pair<std::string, std::string>> pairs{
    {"[12,7] f32 @ tp=N : (tp, _)", "[12,7] f32 @ tp=N : (_, tp)"},
    {"[12,7] f32 @ tp=N : (tp, _)", "[12,7] f32 @ tp=N : (tp, _)"},
    {"[5,3] i16 @ tp=N : (_, tp)", "[5,3] i16 @ tp=N : (_, _)"},
    {"[40] f64 @ tp=N : (tp:cyclic(3))", "[40] f64 @ tp=N : (tp)"},
    {"[40,6] u8 @ tp=N : (tp, _)", "[40,6] u8 @ tp=H : (tp, _)"},
    {"[40,6] i32 @ tp=H : (_, tp)", "[40,6] i32 @ tp=N : (tp, _)"},
    {"[9,8,5] bf16 @ tp=N : (_, tp, _)", "[9,8,5] bf16 @ tp=N : (_, _, tp)"},
    {"[2] f32 @ tp=N : (tp)", "[2] f32 @ tp=N : (_)"},
};

// Each rank sends `tensors` parts of 64 KiB to its successor.
std::vector<TensorTransfer> shifted_parts(int tensors) {
  const std::string shape = fmt::format("[{}] u8 @ tp=N", size() * 65536);
  return std::vector<TensorTransfer>(static_cast<std::size_t>(tensors),
                                     transfer(shape + " : (tp)", shape + " on 1-L,0 : (tp)"));
}

// Holds a stream until the flag is set.
void wait_until_open(void* flag) {
  while (!*static_cast<std::atomic<bool>*>(flag))
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

}  // namespace

TEST_CASE("tensors in device memory move between places, with and without gaps") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  for (const auto& [from, to] : pairs) {
    CAPTURE(from);
    CAPTURE(to);
    const std::vector tensors{transfer(from, to)};
    check_moves(mesh["tp"], tensors);
    check_moves(mesh["tp"], tensors, {.source_gap = 3});
    check_moves(mesh["tp"], tensors, {.memory = 1024, .source_gap = 1, .target_gap = 5});
  }
  mesh.close();
}

TEST_CASE("tensors in device memory move between disjoint and rotated ranks") {
  NEEDS_MULTIPLE_OF(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  check_moves(mesh["tp"],
              {transfer("[20,6] f32 @ tp=H on 0-" + std::to_string(size() / 2 - 1) + " : (tp, _)",
                        "[20,6] f32 @ tp=H on H-L : (_, tp)")});
  check_moves(mesh["tp"],
              {transfer("[20,6] f32 @ tp=N : (tp, _)", "[20,6] f32 @ tp=N on 1-L,0 : (tp, _)")});
  // Blocks on both axes.
  for (const std::int64_t memory : {1 << 20, 1024})
    check_moves(mesh["tp"],
                {transfer("[45,31] f32 @ dp=2,tp=H : (dp:cyclic(4), tp:cyclic(3))",
                          "[45,31] f32 @ dp=2,tp=H : (dp:cyclic(5), tp:cyclic(2))")},
                {.memory = memory});
  mesh.close();
}

TEST_CASE("many tensors in device memory move together") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  std::vector<TensorTransfer> tensors;
  for (const auto& [from, to] : pairs)
    for (int copy = 0; copy < 3; ++copy) tensors.push_back(transfer(from, to));
  check_moves(mesh["tp"], tensors);
  check_moves(mesh["tp"], tensors, {.memory = 2048});
  check_moves(mesh["tp"], {});
  mesh.close();
}

TEST_CASE("a source in device memory may repeat an element by a stride of 0") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const TensorTransfer moved = transfer("[24] f32 @ tp=N : (tp:cyclic)", "[24] f32 @ tp=N : (_)");
  Redistribution move{
      mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
  const auto in = on_device(std::vector<float>{static_cast<float>(rank())});
  const DeviceBuffer<float> out{24};
  const Stream stream = Stream::create();
  move.start({in.span(), {0}}, out.span(), stream).wait();
  std::vector<float> expected;
  for (int i = 0; i < 24; ++i) expected.push_back(static_cast<float>(i % size()));
  CHECK(out.download(stream) == expected);
  mesh.close();
}

TEST_CASE("random tensors in device memory arrive as after gathering and slicing") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const Stream stream = Stream::create();
  rankmesh_test::Random random{17};
  for (int done = 0; done < 40;) {
    rankmesh_test::RandomPlaces places{random};
    const auto from = TensorPlacement::parse(places.place(false, true));
    const auto to = TensorPlacement::parse(places.place(false, false));
    const TransferPlan plan = plan_transfer(from, to);
    if (plan.world_size() > std::max(size(), 2)) continue;
    ++done;
    if (plan.world_size() > size()) continue;
    CAPTURE(from.to_string());
    CAPTURE(to.to_string());
    const auto values = [](auto memory) {
      const auto& own = memory[rank()];
      return std::vector<float>(own.begin(), own.end());
    };
    const auto in = on_device(values(rankmesh_test::filled(from)));
    const std::vector<float> expected = values(rankmesh_test::filled(to));
    const DeviceBuffer<float> out{expected.size()};
    Redistribution move{mesh["tp"], plan, {.kind = MemoryKind::device, .memory = 1024 << done % 4}};
    move.start(in.span(), out.span(), stream).wait();
    CHECK(out.download(stream) == expected);
  }
  mesh.close();
}

TEST_CASE("messages in device memory move in rounds if they are larger than the memory") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const long before = test_platform::nccl().launches;
  check_moves(mesh["tp"],
              {transfer("[96,64] f32 @ tp=N : (tp, _)", "[96,64] f32 @ tp=N : (_, tp)"),
               transfer("[501] u8 @ tp=N : (tp)", "[501] u8 @ tp=N : (tp:cyclic)")},
              {.memory = 1100});
  if (test_platform::is_double() && size() > 1)
    CHECK(test_platform::nccl().launches - before >= 2 * 4);  // of two transfers
  mesh.close();
}

TEST_CASE("a round of messages in device memory has at most 256 operations") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const Stream stream = Stream::create();
  const int count = 140;
  const std::vector<TensorTransfer> tensors = shifted_parts(count);
  const auto part = [](int tensor, int of) {
    return std::vector<std::uint8_t>(65536, static_cast<std::uint8_t>(tensor + 3 * of));
  };
  std::vector<DeviceBuffer<std::uint8_t>> buffers;
  std::vector<TensorSource> in;
  std::vector<TensorTarget> out;
  for (int t = 0; t < count; ++t) {
    buffers.push_back(on_device(part(t, rank())));
    in.emplace_back(buffers.back().span());
    buffers.emplace_back(65536);
    out.emplace_back(buffers.back().span());
  }
  Redistribution move{mesh["tp"], plan_transfer(tensors), {.kind = MemoryKind::device}};
  const FakeNcclCounters before = test_platform::nccl();
  const long long operations = test_platform::cuda().operations;
  move.start(in, out, stream).wait();
  stream.wait(Deadline{Deadline::Duration{30}});
  const FakeNcclCounters after = test_platform::nccl();
  if (test_platform::is_double()) {
    // Each part is sent and received where it lies: the device records the end of each message,
    // and copies nothing.
    CHECK(test_platform::cuda().operations - operations < 3 * count);
    CHECK(after.calls[fake_send] - before.calls[fake_send] == count);
    CHECK(after.calls[fake_recv] - before.calls[fake_recv] == count);
    CHECK(after.launches - before.launches >= 2);
    CHECK(after.largest <= 256);
  }
  for (int t = 0; t < count; ++t)
    CHECK(buffers[static_cast<std::size_t>(2 * t + 1)].download(stream) ==
          part(t, (rank() + size() - 1) % size()));
  mesh.close();
}

TEST_CASE("elements in device memory that enter a node once are passed on there") {
  NEEDS_MULTIPLE_OF(4);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 2, .world_size = size()});
  const std::vector<TensorTransfer> tensors{
      transfer("[40,6] f32 @ tp=2 on 0-1 : (tp, _)", "[40,6] f32 @ tp=N : (_, _)"),
      transfer("[40,6] f32 @ tp=N : (tp, _)", "[40,6] f32 @ tp=H,dp=2 : (_, tp)")};
  const TransferPlan plan = plan_transfer(tensors, &machine);
  std::int64_t forwarded = std::ranges::count(plan.of(Rank{rank()})[0].sends, TransferStep::forward,
                                              &TransferMessage::step);
  mesh["tp"].all_reduce(std::span{&forwarded, 1});
  CHECK(forwarded > 0);
  for (const std::int64_t memory : {1 << 20, 1024})
    check_moves(mesh["tp"], tensors, {.memory = memory, .machine = &machine, .target_gap = 1});
  mesh.close();
}

TEST_CASE("transfers in device memory follow the stream, and later ones allocate nothing") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const Stream stream = Stream::create();
  const TensorTransfer moved =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  const TensorTransfer back{moved.to, moved.from};
  Redistribution there{mesh["tp"],
                       plan_transfer(moved.from, moved.to),
                       {.kind = MemoryKind::device, .memory = 4096}};
  Redistribution return_{
      mesh["tp"], plan_transfer(back.from, back.to), {.kind = MemoryKind::device, .memory = 4096}};
  Placed first{moved.from}, middle{moved.to}, last{moved.from}, other{moved.to};
  fill(moved.from, first.local, 1);
  const DeviceBuffer<std::byte> prepared{std::span<const std::byte>{first.local.memory}};
  FakeCudaCounters before{};
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 1) before = test_platform::cuda();
    // The source gets its elements on the stream, after start() has returned. (The members have to
    // be connected first.) The two transfers of one object are in flight at the same time.
    first.memory.upload(std::vector<std::byte>(prepared.size()), stream);
    std::atomic<bool> is_open = turn == 0 || !test_platform::is_double();
    REQUIRE(cudaLaunchHostFunc(stream.native(), wait_until_open, &is_open) == cudaSuccess);
    device::detail::copy_on_device(first.memory.data(), prepared.data(), prepared.size(), stream);
    Work work = there.start(first.source(), middle.target(), stream);
    Work second = there.start(first.source(), other.target(), stream);
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    is_open = true;
    work.wait();
    second.wait();
    return_.start(middle.source(), last.target(), stream).wait();
    stream.wait(Deadline{Deadline::Duration{30}});
    CHECK(work.test());
  }
  CHECK(test_platform::cuda().allocations == before.allocations);
  CHECK(test_platform::cuda().device_waits == before.device_waits);
  last.download(stream);
  rankmesh_test::check(moved.from, last.local, 1);
  other.download(stream);
  rankmesh_test::check(moved.to, other.local, 1);
  mesh.close();
}

TEST_CASE("close() completes a transfer in device memory whose Work is gone") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const TensorTransfer moved =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  Placed in{moved.from}, out{moved.to};
  fill(moved.from, in.local, 3);
  in.upload(StreamRef{});
  {
    Redistribution move{
        mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
    (void)move.start(in.source(), out.target());
  }
  mesh.close();
  out.download(StreamRef{});
  rankmesh_test::check(moved.to, out.local, 3);
}

TEST_CASE("members that move different kinds of memory are listed") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const bool is_last = rank() == size() - 1;
  const TransferPlan plan =
      plan_transfer(place("[12,8] f32 @ tp=N : (tp, _)"), place("[12,8] f32 @ tp=N : (_, tp)"));
  const auto error = thrown_by<MismatchError>([&] {
    const Redistribution move{
        mesh["tp"], plan, {.kind = is_last ? MemoryKind::host : MemoryKind::device}};
  });
  CHECK_CONTAINS(error.message(), "67108864 bytes of device memory");
  CHECK_CONTAINS(error.message(), "67108864 bytes of host memory");
  mesh["tp"].barrier();
  mesh.close();
}

TEST_CASE("wrong arguments of a redistribution of device memory are refused") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const exchange::RedistributionOptions options{.kind = MemoryKind::device};
  const auto floats = place("[12] f32 @ tp=N : (_)");
  const auto sums = place("[12] f32 @ tp=N : (_) sum(tp)");
  CHECK_THROWS_AS(
      (Redistribution{tp, plan_transfer(floats, floats.as(DataType::float16)), options}),
      UnsupportedError);
  CHECK_THROWS_AS((Redistribution{tp, plan_transfer(sums, floats), options}), UnsupportedError);

  Redistribution move{tp, plan_transfer(floats, floats), options};
  const auto in = on_device(std::vector<float>(12, 1.0F));
  const DeviceBuffer<float> out{12};
  std::vector<float> host(12);
  const Stream stream = Stream::create();
  const auto text = [&](auto&& action) { return thrown_by<UsageError>(action).message(); };
  CHECK_CONTAINS(text([&] { (void)move.start(host, out.span(), stream); }), "it is in host memory");
  CHECK_CONTAINS(text([&] { (void)move.start(in.span(), in.span(), stream); }), "overlap");
  (void)test_platform::captured(stream, [&] {
    CHECK_CONTAINS(text([&] { (void)move.start(in.span(), out.span(), stream); }),
                   "on a stream that is captured");
  });
  {
    NcclGroup batch{mesh};
    CHECK_CONTAINS(text([&] { (void)move.start(in.span(), out.span(), stream); }),
                   "tp.redistribution inside an NcclGroup");
    batch.end();
  }
  move.start(in.span(), out.span(), stream).wait();
  CHECK(out.download(stream) == std::vector<float>(12, 1.0F));
  mesh.close();
  CHECK_THROWS_AS((void)move.start(in.span(), out.span(), stream), ClosedError);
}

TEST_CASE("a rank that does not start a transfer in device memory ends the wait of the others") {
  NEEDS_RANKS(2);
  MeshOptions options = test_platform::short_timeout();
  options.check = false;  // a comparison waits for both ends of a message
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const TensorTransfer moved =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  Redistribution move{
      mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
  Placed in{moved.from}, out{moved.to};
  const bool is_last = rank() == size() - 1;
  // The members connect to each other.
  move.start(in.source(), out.target()).wait(Deadline::Duration{30});
  if (!is_last) {
    Work work = move.start(in.source(), out.target());
    const auto error = thrown_by<TimeoutError>([&] { work.wait(Deadline::Duration{1}); });
    CHECK(error.missing() == std::vector<Rank>{Rank{size() - 1}});
    CHECK_CONTAINS(error.message(), "tp.redistribution 0, transfer 1");
    CHECK_THROWS_AS((void)move.start(in.source(), out.target()), ClosedError);
  }
  wait_for_all();
  mesh.abort();
  wait_for_all();
}
