// SPDX-License-Identifier: BSD-3-Clause
// Endings on devices that leave something behind, and what the program learns of it.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "device/endings.hpp"
#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/nccl/batch.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using namespace test_endings;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::wait_for_all;
using test_platform::is_double;
using test_platform::on_device;

namespace {

// Returns what is written to stderr during an action.
template <class Action>
std::string stderr_of(Action&& action) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(::dup2(::fileno(file), STDERR_FILENO) >= 0);
  action();
  REQUIRE(::dup2(before, STDERR_FILENO) >= 0);
  (void)::close(before);
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  (void)std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("a close whose other ranks do not come ends the work on the program's streams") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  const long before = test_platform::nccl().communicators;
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options_with(std::make_shared<Warnings>(), 1.5)};
    const Stream stream = Stream::create();
    const auto value = on_device<float>({1});
    wait_for_all();
    if (rank() != 1) {
      mesh["tp"].all_reduce(value.span(), stream);
      const Deadline soon{Deadline::Duration{2 * 1.5 + limit() + more}};
      CHECK_THROWS_WITH_AS(mesh.close(), doctest::Contains("rank 1 (tp=1) is not in rankmesh"),
                           TimeoutError);
      REQUIRE(cudaStreamSynchronize(stream.native()) == cudaSuccess);
      CHECK_FALSE(soon.passed());
      CHECK(mesh.is_closed());
    }
    wait_for_all();
  }
  CHECK(has_freed_all_but(before));
  wait_for_all();
}

TEST_CASE("communicators that are left behind are reported although nobody has chosen a log") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  SKIP_UNLESS(std::getenv("RANKMESH_LOG") == nullptr, "RANKMESH_LOG chooses a log");
  MeshOptions options = options_with(nullptr, 30);
  options.log = {};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  cudaGraphExec_t exec = graph_of(mesh["tp"], value, stream);
  wait_for_all();
  CHECK_CONTAINS(stderr_of([&] { mesh.abort(); }), "left behind: 'tp' (until the CUDA graphs");
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  wait_for_all();
}

TEST_CASE("an abort takes no longer because many groups are in graphs") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  constexpr int groups = 8;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options_with(std::make_shared<Warnings>(), 30)};
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  std::vector<cudaGraphExec_t> execs;
  for (int i = 0; i < groups; ++i) {
    const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "g" + std::to_string(i));
    execs.push_back(graph_of(*group, value, stream));
  }
  wait_for_all();
  const Deadline soon{Deadline::Duration{more}};
  mesh.abort();
  CHECK_FALSE(soon.passed());
  for (cudaGraphExec_t exec : execs) REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  wait_for_all();
}

TEST_CASE("an abort names what the limit of the device has left behind") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(5);
  const auto warnings = std::make_shared<Warnings>();
  MeshOptions options = options_with(warnings, 30);
  options.device_deadline = Deadline::Duration{1};
  cudaGraphExec_t exec = nullptr;
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options};
    const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
    const Stream stream = Stream::create();
    const auto value = on_device<float>({1});
    exec = graph_of(mesh["tp"], value, stream);
    wait_for_all();
    if (rank() != 1) group->all_reduce(value.span(), stream);
    const Deadline soon{Deadline::Duration{1 + limit() + more}};
    while (warnings->all().find("were aborted") == std::string::npos && !soon.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    CHECK_FALSE(soon.passed());
    mesh.abort();
    CHECK_THROWS_WITH_AS(group->all_reduce(value.span(), stream),
                         doctest::Contains("left behind: 'tp' (until the CUDA graphs"),
                         ClosedError);
  }
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  wait_for_all();
}

TEST_CASE("a fault of the device does not end the process in the thread of the watch") {
  SKIP_UNLESS(is_double(), "faults are injected into the double");
  MeshOptions options = options_with(std::make_shared<Warnings>(), 3);
  options.device_deadline = Deadline::Duration{0.4};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  mesh["tp"].all_reduce(value.span(), stream);
  stream.wait(Deadline{Deadline::Duration{30}});
  test_platform::fault_of_device(cudaErrorIllegalAddress);
  std::this_thread::sleep_for(std::chrono::seconds{1});
  test_platform::fault_of_device(cudaSuccess);
  wait_for_all();
  mesh.close();
}
