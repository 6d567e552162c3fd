// SPDX-License-Identifier: BSD-3-Clause
// Symmetric memory on devices: allocated by NCCL, registered with the communicators of names.
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

namespace {

constexpr std::size_t elements = 5000;

const char* grid() { return size() % 2 == 0 ? "dp=2,tp=auto" : "dp=1,tp=auto"; }

std::vector<float> values_of(DeviceSpan<float> span) {
  std::vector<float> host(span.size());
  device::detail::copy(host.data(), span.data(), host.size() * sizeof(float),
                       device::detail::Direction::to_host, StreamRef{});
  return host;
}

void fill(DeviceSpan<float> span, float value) {
  const std::vector<float> host(span.size(), value);
  device::detail::copy(span.data(), host.data(), host.size() * sizeof(float),
                       device::detail::Direction::to_device, StreamRef{});
}

bool is_nothing_left(const FakeNcclCounters& before) {
  const FakeNcclCounters now = test_platform::nccl();
  return now.memory == before.memory && now.windows == before.windows &&
         now.registrations == before.registrations && now.communicators == before.communicators;
}

}  // namespace

TEST_CASE(
    "symmetric device memory is zeroed, registered with the names' communicators, and goes with "
    "the mesh") {
  const FakeNcclCounters before = test_platform::nccl();
  const FakeCudaCounters cuda_before = test_platform::cuda();
  Mesh mesh{MPI_COMM_WORLD, grid(), test_platform::options()};
  const auto memory = mesh.allocate_symmetric<float, MemoryKind::device>(elements, {"tp", "dp"});
  static_assert(std::is_same_v<decltype(memory), const DeviceSpan<float>>);
  CHECK(memory.size() == elements);
  CHECK(values_of(memory) == std::vector<float>(elements, 0.0F));
  if (test_platform::is_double()) {
    const long groups = (mesh["tp"].size() > 1 ? 1 : 0) + (mesh["dp"].size() > 1 ? 1 : 0);
    const int version = nccl::Library::load().version();
    const FakeNcclCounters now = test_platform::nccl();
    CHECK(now.memory - before.memory == (version >= 21900 ? 1 : 0));
    CHECK(now.windows - before.windows == (version >= 22700 ? groups : 0));
    CHECK(now.registrations - before.registrations ==
          (version >= 21900 && version < 22700 ? groups : 0));
  }
  fill(memory, static_cast<float>(rank() + 1));
  auto& tp = mesh["tp"];
  float expected = 0;
  for (const Rank member : tp.ranks()) expected += static_cast<float>(member.value() + 1);
  tp.all_reduce(memory);
  CHECK(values_of(memory) == std::vector<float>(elements, expected));
  fill(memory, 1);
  mesh["dp"].all_reduce(memory.subspan(elements / 2, 16));
  CHECK(values_of(memory)[elements / 2] == static_cast<float>(mesh["dp"].size()));
  CHECK(values_of(memory)[0] == 1);
  CHECK(mesh.allocate_symmetric<std::int8_t, MemoryKind::device>(0, {}).size() == 0);
  const auto stream = device::Stream::create();
  cudaLaunchHostFunc(
      stream.native(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{200}); },
      nullptr);
  tp.all_reduce(memory, stream);  // still runs when close() begins, which waits for it
  mesh.close();
  CHECK(is_nothing_left(before));
  CHECK(test_platform::cuda().allocations == cuda_before.allocations);
}

TEST_CASE(
    "symmetric device memory that ranks request differently, or that one cannot allocate, fails on "
    "all ranks") {
  NEEDS_RANKS(2);
  const FakeNcclCounters before = test_platform::nccl();
  MeshOptions options = test_platform::options();
  options.names["dp"].lazy = true;
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=2,tp=auto" : "dp=auto,tp=1", options};
  const FakeNcclCounters open = test_platform::nccl();
  CHECK_THROWS_AS(((void)mesh.allocate_symmetric<float, MemoryKind::device>(4, {"pp"})),
                  UnknownName);
  CHECK_THROWS_WITH_AS(
      ((void)mesh.allocate_symmetric<float, MemoryKind::device>(rank() == 0 ? 4 : 5, {"tp"})),
      doctest::Contains("bytes of symmetric memory"), MismatchError);
  CHECK_THROWS_WITH_AS(((void)mesh.allocate_symmetric<float, MemoryKind::device>(4, {"dp"})),
                       doctest::Contains("not open"), MismatchError);
  const std::size_t too_much = std::size_t{1} << 40;
  CHECK_THROWS_WITH_AS(((void)mesh.allocate_symmetric<float, MemoryKind::device>(
                           rank() == 0 ? too_much : 4, {"tp"})),
                       doctest::Contains("rank 0"), MismatchError);
  CHECK(test_platform::nccl().memory == open.memory);
  mesh.open({"dp"});
  const auto memory = mesh.allocate_symmetric<float, MemoryKind::device>(4, {"dp"});
  fill(memory, 1);
  mesh["dp"].all_reduce(memory);
  CHECK(values_of(memory)[3] == static_cast<float>(mesh["dp"].size()));
  mesh.close();
  CHECK(is_nothing_left(before));
  CHECK_THROWS_AS(((void)mesh.allocate_symmetric<float, MemoryKind::device>(4, {"tp"})),
                  ClosedError);
}

TEST_CASE("blocks in symmetric memory are gathered and scattered along any axis") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::size_t>(size());
  const auto block = mesh.allocate_symmetric<float, MemoryKind::device>(6, {"tp"});
  const DeviceBuffer<float> whole{6 * n};
  const Axis axis{{2, 3}, 1};
  const device::Stream stream = device::Stream::create();
  for (std::int64_t root = 0; root < std::min<std::int64_t>(tp.size(), 2); ++root) {
    CAPTURE(root);
    fill(block, static_cast<float>(rank() + 1));
    tp.gather(block, whole.span(), axis, root, stream);
    std::vector<float> expected;
    for (std::size_t i = 0; i < 6 * n; ++i)
      expected.push_back(static_cast<float>(i % (3 * n) / 3 + 1));
    if (tp.rank_in_group().value() == root) CHECK(whole.download(stream) == expected);
    stream.wait(Deadline{Deadline::Duration{30}});
    fill(block, 0);
    tp.scatter(whole.span(), block, axis, root, stream);
    stream.wait(Deadline{Deadline::Duration{30}});
    CHECK(values_of(block) == std::vector<float>(6, static_cast<float>(rank() + 1)));
    wait_for_all();
  }
  mesh.close();
}

TEST_CASE("symmetric memory of a mesh that is destroyed stays until the program's work has ended") {
  const device::Stream stream = device::Stream::create();
  const DeviceBuffer<float> copy{elements};
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
    const auto memory = mesh.allocate_symmetric<float, MemoryKind::device>(elements, {"tp"});
    fill(memory, 7);
    cudaLaunchHostFunc(
        stream.native(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{200}); },
        nullptr);
    REQUIRE(cudaMemcpyAsync(copy.data(), memory.data(), elements * sizeof(float),
                            cudaMemcpyDeviceToDevice, stream.native()) == cudaSuccess);
    wait_for_all();
    mesh.abort();
    wait_for_all();
  }
  CHECK(copy.download(stream) == std::vector<float>(elements, 7));
  wait_for_all();
}

TEST_CASE("a window that fails on one rank ends on all, and breaks the groups that asked") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(4);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  SKIP_UNLESS(nccl::Library::load().version() >= 22700, "needs NCCL 2.27");
  const FakeNcclCounters before = test_platform::nccl();
  MeshOptions options = test_platform::options();
  options.timeout = Deadline::Duration{1.5};  // the other ranks wait for half of it
  Mesh mesh{MPI_COMM_WORLD, "tp=auto | dp=auto", options};
  if (rank() == size() - 1) test_platform::inject("window:code=2");
  CHECK_THROWS_WITH_AS(((void)mesh.allocate_symmetric<float, MemoryKind::device>(4, {"tp"})),
                       doctest::Contains("injected: a window"), MismatchError);
  test_platform::inject("");
  const DeviceBuffer<float> buffer{1};
  CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(buffer.span()), doctest::Contains("broken"),
                       ClosedError);
  mesh.close();
  CHECK(test_platform::nccl().communicators == before.communicators);
  CHECK(test_platform::nccl().memory == before.memory);
  wait_for_all();
}

TEST_CASE("symmetric device memory without devices throws the reason why there are none") {
  MeshOptions options = test_platform::options();
  options.devices = DeviceUse::off;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  CHECK_THROWS_WITH_AS(((void)mesh.allocate_symmetric<float, MemoryKind::device>(4, {"tp"})),
                       doctest::Contains("MeshOptions::devices is off"), NoDeviceError);
  mesh.close();
}
