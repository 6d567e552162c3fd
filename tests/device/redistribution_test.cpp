// SPDX-License-Identifier: BSD-3-Clause
// Tensors in device memory move between places. The results are compared with the definition of a
// place, element by element.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "device/placed_on_device.hpp"
#include "device/test_platform.hpp"
#include "exchange/placed_tensors.hpp"
#include "machine/read_machine.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/redistribution.hpp"
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
using rankmesh_test::pairs_of_one_type;
using rankmesh_test::place;
using rankmesh_test::Placed;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::transfer;
using rankmesh_test::wait_for_all;
using test_platform::on_device;

namespace {

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

// Each rank sends `tensors` parts of 64 KiB to its successor.
std::vector<TensorTransfer> shifted_parts(int tensors) {
  const std::string shape = fmt::format("[{}] u8 @ tp=N", size() * 65536);
  return std::vector<TensorTransfer>(static_cast<std::size_t>(tensors),
                                     transfer(shape + " : (tp)", shape + " on 1-L,0 : (tp)"));
}

// Takes the paths of a build without nvcc, on the doubles.
struct WithoutKernels {
  WithoutKernels() { setenv("RANKMESH_TEST_NO_KERNELS", "1", 1); }
  ~WithoutKernels() { unsetenv("RANKMESH_TEST_NO_KERNELS"); }
};

// Returns the operations of the device in a transfer.
long long operations_of(const std::function<void()>& transfer) {
  const long long before = test_platform::cuda().operations;
  transfer();
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return test_platform::cuda().operations - before;
}

}  // namespace

TEST_CASE("kernels copy short runs in few launches") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() <= 8, "with more ranks, a message has few runs");
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const TensorTransfer moved = transfer("[64,48,40] f32 @ tp=N : (tp:cyclic, _, _)",
                                        "[64,48,40] f32 @ tp=N : (_, _, tp:cyclic(3))");
  Placed in{moved.from, 3}, out{moved.to, 5};
  Redistribution move{
      mesh["tp"], plan_transfer(moved.from, moved.to), {.kind = MemoryKind::device}};
  const auto once = [&] { move.start(in.source(), out.target()).wait(); };
  once();  // the members connect to each other
  const long long loads = test_platform::cuda().late_loads;
  const long long with_kernels = operations_of(once);
  CHECK(test_platform::cuda().late_loads == loads);
  const WithoutKernels without;
  CHECK(operations_of(once) > 10 * with_kernels);
  mesh.close();
}

TEST_CASE("tensors in device memory move without kernels too") {
  const WithoutKernels without;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  for (const auto& [from, to] : pairs_of_one_type) {
    CAPTURE(from);
    CAPTURE(to);
    check_moves(mesh["tp"], {transfer(from, to)}, {.memory = 1024, .target_gap = 5});
    check_moves(mesh["tp"], {transfer(from, to)});
  }
  mesh.close();
}

TEST_CASE("tensors in device memory move between places, with and without gaps") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  for (const auto& [from, to] : pairs_of_one_type) {
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
  for (const auto& [from, to] : pairs_of_one_type)
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
