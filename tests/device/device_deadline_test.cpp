// SPDX-License-Identifier: BSD-3-Clause
// MeshOptions::device_deadline: the limit of operations that are stuck on the device.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/endings.hpp"
#include "device/test_platform.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::wait_for_all;
using namespace test_endings;
using test_platform::on_device;

namespace {

// A mesh whose operations on devices have a limit of a second.
MeshOptions watched(const std::shared_ptr<Warnings>& warnings) {
  MeshOptions options = options_with(warnings, 30);
  options.device_deadline = Deadline::Duration{1};
  return options;
}

// Waits until the mesh has logged what is stuck, and returns it.
std::string verdict(Warnings& warnings) {
  const Deadline soon{Deadline::Duration{1 + more}};
  while (warnings.all().empty() && !soon.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  return warnings.all();
}

}  // namespace

TEST_CASE("an operation that does not end on the device ends at its own limit, on every rank") {
  NEEDS_RANKS(2);
  const long before = test_platform::nccl().communicators;
  for (const bool is_async : {false, true}) {
    CAPTURE(is_async);
    const auto warnings = std::make_shared<Warnings>();
    MeshOptions options = options_with(warnings, 30);
    options.device_deadline = Deadline::Duration{1};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto ; all=tp", options};
    auto& tp = mesh["tp"];
    const auto group = mesh.new_group(tp.ranks().to_vector(), "mine");
    const Stream stream = Stream::create();
    const auto value = on_device<float>({1});
    for (int i = 0; i < 20; ++i) tp.all_reduce(value.span(), stream);
    const StreamRef used = is_async ? tp.stream() : StreamRef{stream};
    const Deadline soon{Deadline::Duration{1 + more}};
    std::optional<Work> work;
    if (rank() != 1 && is_async) work = tp.all_reduce_async(value.span(), stream);
    if (rank() != 1 && !is_async) tp.all_reduce(value.span(), stream);
    // The program only waits for CUDA. Rank 1 waits for nothing, and learns of it, too.
    if (rank() != 1)
      REQUIRE(cudaStreamSynchronize(static_cast<cudaStream_t>(used.native())) == cudaSuccess);
    while (warnings->all().empty() && !soon.passed())
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    CHECK_FALSE(soon.passed());
    CHECK_CONTAINS(warnings->all(), "all_reduce of 'tp' on rank ");
    CHECK_CONTAINS(warnings->all(), "missing: rank 1: all NCCL communicators of this rank");
    const auto says_who = doctest::Contains("not ended on the device within 1 s; missing: rank 1");
    if (work) CHECK_THROWS_WITH_AS(work->wait(), says_who, TimeoutError);
    if (work) CHECK_THROWS_WITH_AS((void)work->test(), says_who, TimeoutError);
    CHECK_THROWS_WITH_AS(tp.all_reduce(value.span(), stream), says_who, Error);
    CHECK_THROWS_WITH_AS(group->all_reduce(value.span(), stream), says_who, TimeoutError);
    CHECK_THROWS_WITH_AS(group->all_reduce(value.span(), stream), doctest::Contains("broken"),
                         ClosedError);
    wait_for_all();
    mesh.abort();
    wait_for_all();
  }
  CHECK(test_platform::nccl().communicators == before);
}

TEST_CASE("an operation that does not end is not forgotten behind many that end") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  const auto warnings = std::make_shared<Warnings>();
  MeshOptions options = options_with(warnings, 30);
  options.device_deadline = Deadline::Duration{1};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  const auto group = mesh.new_group(tp.ranks().to_vector(), "mine");
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1}), other = on_device<float>({1});
  std::optional<Work> stuck;
  if (rank() != 1) stuck = tp.all_reduce_async(value.span(), stream);
  for (int i = 0; i < 300; ++i) group->all_reduce(other.span(), stream);
  const Deadline soon{Deadline::Duration{1 + more}};
  while (warnings->all().empty() && !soon.passed())
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  CHECK_CONTAINS(warnings->all(), "all_reduce of 'tp' on rank ");
  wait_for_all();
  mesh.abort();
  wait_for_all();
}

TEST_CASE("nobody is called missing in groups for which the board has no space") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  const auto warnings = std::make_shared<Warnings>();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", watched(warnings)};
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  std::vector<std::shared_ptr<GroupCoordinator>> groups;
  const auto open = [&] {
    const std::string name = "g" + std::to_string(groups.size());
    groups.push_back(mesh.new_group(mesh["tp"].ranks().to_vector(), name));
    groups.back()->all_reduce(value.span(), stream);
    stream.wait(Deadline{Deadline::Duration{30}});
  };
  for (int i = 0; i < 64; ++i) open();  // with 'tp' one more than there are places
  // The places of groups that are closed are free again, but not for a group that has got none.
  for (int i = 0; i < 2; ++i) {
    mesh.close(groups.front());
    groups.erase(groups.begin());
  }
  wait_for_all();
  if (rank() != 1) groups.back()->all_reduce(value.span(), stream);
  CHECK_CONTAINS(verdict(*warnings), "so the missing ranks are not known");
  wait_for_all();
  mesh.abort();
  wait_for_all();
}

TEST_CASE("a group that is closed gives its place on the board back") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  const auto warnings = std::make_shared<Warnings>();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", watched(warnings)};
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  for (int i = 0; i < 70; ++i) {  // more than there are places
    const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "brief");
    group->all_reduce(value.span(), stream);
    stream.wait(Deadline{Deadline::Duration{30}});
    mesh.close(group);
  }
  const auto group = mesh.new_group(mesh["tp"].ranks().to_vector(), "mine");
  if (rank() != 1) group->all_reduce(value.span(), stream);
  CHECK_CONTAINS(verdict(*warnings), "all_reduce of 'mine' on rank");
  CHECK_CONTAINS(verdict(*warnings), "missing: rank 1: all NCCL communicators");
  wait_for_all();
  mesh.abort();
  wait_for_all();
}

TEST_CASE("the missing rank is named, whichever rank reaches its limit first") {
  NEEDS_RANKS(4);
  NEEDS_AT_MOST_RANKS(4);
  // Rank 1 is missing in tp, behind which the dp of ranks 0 and 2 waits.
  enum class Rank0 { waits_for_tp, issues_dp_too };
  for (const Rank0 then : {Rank0::waits_for_tp, Rank0::issues_dp_too}) {
    CAPTURE(static_cast<int>(then));
    const auto warnings = std::make_shared<Warnings>();
    Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=2", watched(warnings)};
    const Stream stream = Stream::create();
    const auto value = on_device<float>({1});
    if (rank() == 2) mesh["dp"].all_reduce(value.span(), stream);
    wait_for_all();
    if (rank() == 0) {
      // Rank 2 reaches its limit first.
      std::this_thread::sleep_for(std::chrono::milliseconds{500});
      mesh["tp"].all_reduce(value.span(), stream);
      if (then == Rank0::issues_dp_too) mesh["dp"].all_reduce(value.span(), stream);
    }
    const std::string said = verdict(*warnings);
    CHECK_CONTAINS(said, "the device of rank 0 waits in 'tp' for rank 1");
    if (said.find("on rank 2") != std::string::npos)
      CHECK_CONTAINS(said, then == Rank0::waits_for_tp ? "within 1 s; missing: rank 0; the device"
                                                       : "have issued it; the device");
    wait_for_all();
    mesh.abort();
    wait_for_all();
  }
}

TEST_CASE("a limit for the device does not disturb operations that end") {
  MeshOptions options = test_platform::short_timeout();
  options.device_deadline = Deadline::Duration{1};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const Stream stream = Stream::create();
  const auto value = on_device<float>({1});
  for (int turn = 0; turn < 2; ++turn) {
    wait_for_all();
    for (int i = 0; i < 300; ++i) mesh["tp"].all_reduce(value.span(), ReduceOp::max, stream);
    stream.wait(Deadline{Deadline::Duration{30}});
    std::this_thread::sleep_for(std::chrono::milliseconds{1200});
  }
  CHECK(value.download(stream) == std::vector<float>{1});
  wait_for_all();
  mesh.close();
}
