// SPDX-License-Identifier: BSD-3-Clause
// What a Redistribution of device memory promises beside the right elements: the order on the
// stream, errors, and the end of a wait for a rank that does not come.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/placed_on_device.hpp"
#include "device/test_platform.hpp"
#include "exchange/placed_tensors.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using exchange::Redistribution;
using rankmesh_test::fill;
using rankmesh_test::place;
using rankmesh_test::Placed;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::transfer;
using rankmesh_test::wait_for_all;
using test_platform::on_device;

namespace {

// Returns whether the device has freed its memory except that much.
bool is_freed(long allocations) {
  for (int turn = 0; turn < 10'000 && test_platform::cuda().allocations > allocations; ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return test_platform::cuda().allocations == allocations;
}

// Holds a stream until the flag is set.
void wait_until_open(void* flag) {
  while (!*static_cast<std::atomic<bool>*>(flag))
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

}  // namespace

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
  NEEDS_AT_MOST_RANKS(4);
  MeshOptions options = test_platform::short_timeout();
  options.check = false;  // a comparison waits for both ends of a message
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const TensorTransfer moved =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  Placed in{moved.from}, out{moved.to};
  const bool is_last = rank() == size() - 1;
  const long before = test_platform::cuda().allocations;
  std::optional<Redistribution> move{std::in_place, mesh["tp"], plan_transfer(moved.from, moved.to),
                                     exchange::RedistributionOptions{.kind = MemoryKind::device}};
  // The members connect to each other.
  move->start(in.source(), out.target()).wait(Deadline::Duration{30});
  if (!is_last) {
    Work work = move->start(in.source(), out.target());
    const auto error = thrown_by<TimeoutError>([&] { work.wait(Deadline::Duration{0.6}); });
    CHECK(error.missing() == std::vector<Rank>{Rank{size() - 1}});
    CHECK_CONTAINS(error.message(), "tp.redistribution 0, transfer 1");
    CHECK_THROWS_AS((void)move->start(in.source(), out.target()), ClosedError);
  }
  wait_for_all();
  mesh.abort();
  move.reset();
  CHECK(is_freed(before));
  wait_for_all();
}

TEST_CASE("operations that streams wait for are forgotten when they have ended") {
  SKIP_UNLESS(rankmesh_test::size() <= 4, "needs at most 4 ranks, because it makes many calls");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const TensorTransfer moved =
      transfer("[12,8] f32 @ tp=N : (tp, _)", "[12,8] f32 @ tp=N : (_, tp)");
  Redistribution move{
      mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
  Placed in{moved.from}, out{moved.to};
  const DeviceBuffer<float> sum{8};
  const Stream stream = Stream::create();
  const auto steps = [&](int count) {
    for (int step = 0; step < count; ++step) {
      move.start(in.source(), out.target(), stream).wait();
      mesh["tp"].all_reduce_async(sum.span(), ReduceOp::sum, stream).wait();
      if (step % 10 == 0) stream.wait(Deadline{Deadline::Duration{30}});
    }
    return test_platform::cuda().events;
  };
  (void)steps(300);  // the record of the calls keeps events too, up to a limit
  const long before = test_platform::cuda().events;
  CHECK(steps(400) < before + 400);
  mesh.close();
}

TEST_CASE("a transfer that was refused on one member has no number") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(4);
  MeshOptions options = test_platform::short_timeout();
  options.check = false;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const TensorTransfer moved =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  Redistribution move{
      mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
  Placed in{moved.from}, out{moved.to};
  if (rank() == 0) {
    NcclGroup batch{mesh};
    CHECK_THROWS_AS((void)move.start(in.source(), out.target()), UsageError);
    batch.end();
  }
  move.start(in.source(), out.target()).wait(Deadline::Duration{30});
  if (rank() != size() - 1) {
    Work work = move.start(in.source(), out.target());
    const auto error = thrown_by<TimeoutError>([&] { work.wait(Deadline::Duration{0.6}); });
    CHECK(error.message().starts_with("tp.redistribution 0, transfer 1 did not end"));
  }
  wait_for_all();
  mesh.abort();
  wait_for_all();
}

TEST_CASE(
    "symmetric memory is packed, because the other side of a message may be ordinary memory") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  // Parts of 64 KiB move without a copy otherwise.
  const auto shape = std::to_string(size() * 65536);
  const TensorTransfer moved =
      transfer("[" + shape + "] u8 @ tp=N : (tp)", "[" + shape + "] u8 @ tp=N on 1-L,0 : (tp)");
  Redistribution move{
      mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
  const auto symmetric = mesh.allocate_symmetric<std::uint8_t, MemoryKind::device>(65536, {"tp"});
  const auto ordinary =
      on_device(std::vector<std::uint8_t>(65536, static_cast<std::uint8_t>(rank() + 1)));
  const DeviceBuffer<std::uint8_t> out{65536};
  const Stream stream = Stream::create();
  move.start(ordinary.span(), symmetric, stream).wait();
  move.start(symmetric, out.span(), stream).wait();
  stream.wait(Deadline{Deadline::Duration{30}});
  const int sender = (rank() + size() - 2) % size();
  CHECK(out.download(stream) ==
        std::vector<std::uint8_t>(65536, static_cast<std::uint8_t>(sender + 1)));
  mesh.close();
}

TEST_CASE(
    "the memory for messages stays until the work that uses it has ended, after an abort too") {
  NEEDS_AT_MOST_RANKS(3);  // the abort waits for its limit
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const TensorTransfer moved =
      transfer("[64,48] f32 @ tp=N : (tp, _)", "[64,48] f32 @ tp=N : (_, tp)");
  Placed in{moved.from}, out{moved.to};
  const Stream stream = Stream::create();
  const long before = test_platform::cuda().allocations;
  const long memory = size() > 1 ? 1 : 0;  // one rank has no messages
  std::atomic<bool> is_open = false;
  {
    Redistribution move{
        mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
    move.start(in.source(), out.target(), stream).wait(Deadline::Duration{30});
    REQUIRE(cudaLaunchHostFunc(stream.native(), wait_until_open, &is_open) == cudaSuccess);
    (void)move.start(in.source(), out.target(), stream);
    wait_for_all();
    mesh.abort();
  }
  CHECK(test_platform::cuda().allocations == before + memory);
  is_open = true;
  CHECK(is_freed(before));
  wait_for_all();
}
