// SPDX-License-Identifier: BSD-3-Clause
// How NCCL communicators come to be, and how that fails. The faults are the double's.
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include "device/test_platform.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using test_platform::inject;
using test_platform::short_timeout;

namespace {

// What waits for deadlines runs at some rank counts only.
bool skips_deadlines() { return (size() != 3 && size() != 4) || !test_platform::is_double(); }

FakeNcclCounters counters() { return test_platform::nccl(); }

// All ranks see the same message, which holds `part`.
template <class Expected>
void all_throw(const MeshOptions& options, const std::string& part) {
  const std::string message = rankmesh_test::thrown_by<Expected>([&] {
                                (void)Mesh{MPI_COMM_WORLD, "tp=auto", options};
                              }).message();
  CAPTURE(message);
  CHECK_CONTAINS(message, part);
  CHECK(rankmesh_test::is_same_as_on_first(message));
}

}  // namespace

TEST_CASE("one unique ID per distinct group, created by its leader; everything is freed") {
  const FakeNcclCounters before = counters();
  const FakeCudaCounters cuda_before = test_platform::cuda();
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=auto,tp=2 ; all=dp*tp" : "tp=auto",
            test_platform::options()};
  const MeshPlan& plan = mesh.plan();
  long led = 0;
  long held = 0;
  for (const CommunicatorUse& use : plan.communicators(mesh.rank())) {
    ++held;
    const std::size_t family = use.families.front();
    const std::int64_t group = plan.families()[family].find(mesh.rank())->group;
    led += use.ranks.at(plan.leader(family, group).value()) == mesh.rank() ? 1 : 0;
  }
  if (test_platform::is_double()) {
    CHECK(counters().unique_ids - before.unique_ids == led);
    CHECK(counters().communicators - before.communicators == held);
  }
  mesh.close();
  const FakeNcclCounters after = counters();
  CHECK(after.communicators == before.communicators);
  CHECK(after.roots == before.roots);
  CHECK(after.segments == before.segments);
  const FakeCudaCounters cuda_after = test_platform::cuda();
  CHECK(cuda_after.streams == cuda_before.streams);
  CHECK(cuda_after.allocations == cuda_before.allocations);
  CHECK(cuda_after.events == cuda_before.events);
}

TEST_CASE("a mesh does not use devices if they are off") {
  const FakeNcclCounters before = counters();
  MeshOptions options = test_platform::options();
  options.devices = DeviceUse::off;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  CHECK(counters().inits == before.inits);
  const device::DeviceBuffer<float> buffer{1};
  CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(buffer.span()),
                       doctest::Contains("MeshOptions::devices is off"), NoDeviceError);
  mesh.close();
}

TEST_CASE("two ranks on one device are an error that names them, unless sharing is allowed") {
  NEEDS_RANKS(2);
  MeshOptions options = short_timeout();
  options.share_devices = false;
  options.device = 0;
  all_throw<MismatchError>(options, "ranks 0 and 1 share one device");
  options.device = 1000;
  all_throw<MismatchError>(options, "device 1000 was requested");
  int visible = 0;
  REQUIRE(cudaGetDeviceCount(&visible) == cudaSuccess);
  options.device = visible;  // the first that is not there
  all_throw<MismatchError>(options, std::to_string(visible) + " was requested");
}

TEST_CASE("NCCL_COMM_ID, which makes all IDs equal, is an error") {
  NEEDS_RANKS(2);
  setenv("NCCL_COMM_ID", "127.0.0.1:4242", 1);
  all_throw<MismatchError>(short_timeout(), "NCCL_COMM_ID is set");
  unsetenv("NCCL_COMM_ID");
}

TEST_CASE(
    "NCCL_COMM_ID is refused on a rank that makes no ID too: NCCL reads it in the first member's "
    "init") {
  NEEDS_RANKS(2);
  const int reader = size() - 1;
  if (rank() == reader) setenv("NCCL_COMM_ID", "127.0.0.1:4242", 1);
  all_throw<MismatchError>(short_timeout(), "NCCL_COMM_ID is set");
  if (rank() == reader) unsetenv("NCCL_COMM_ID");
}

TEST_CASE(
    "a leader without an ID or a failed init on one rank: all ranks throw and free everything") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  const long communicators = counters().communicators;
  for (const std::string fault : {"id:code=2", "init:rank=1,code=3"}) {
    CAPTURE(fault);
    inject(fault.c_str());
    all_throw<MismatchError>(short_timeout(), "failed");
    inject("");
    CHECK(counters().communicators == communicators);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};  // and the next one works
    const device::DeviceBuffer<float> one{std::span<const float>{std::vector<float>{1}}};
    mesh["tp"].all_reduce(one.span());
    CHECK(one.download(StreamRef{}) == std::vector<float>{static_cast<float>(size())});
    mesh.close();
  }
}

TEST_CASE("ranks wait for a late ID, and name the leader of an ID that never comes") {
  SKIP_UNLESS(!skips_deadlines(), "runs at 3 and 4 ranks, on the CPU doubles");
  for (const int milliseconds : {300, 3500}) {
    MeshOptions options = test_platform::options();
    // It also ends the other steps of the opening, to which a rank may come late.
    options.timeout = Deadline::Duration{milliseconds == 300 ? 20.0 : 2.0};
    if (rank() == 0) inject(("id_late:ms=" + std::to_string(milliseconds)).c_str());
    try {
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
      CHECK(milliseconds == 300);
      mesh.close();
    } catch (const TimeoutError& error) {
      CHECK(milliseconds == 3500);
      CHECK_CONTAINS(error.message(), "NCCL bootstrap of 'tp'");
      if (rank() != 0) CHECK(error.missing() == std::vector<Rank>{0});
    }
    if (rank() == 0) inject("");
    wait_for_all();
  }
}

TEST_CASE("an init that never ends is ended by the deadline, on every rank") {
  SKIP_UNLESS(!skips_deadlines(), "runs at 3 and 4 ranks, on the CPU doubles");
  const long communicators = counters().communicators;
  MeshOptions options = test_platform::options();
  options.timeout = Deadline::Duration{1.7};  // also of the other steps of the opening
  if (rank() == 1) inject("late:ms=2500");
  try {
    const Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    FAIL("no exception");
  } catch (const Error& error) {
    CAPTURE(error.message());
    CHECK_CONTAINS(error.message(), "NCCL bootstrap of 'tp': init");
  }
  inject("");
  CHECK(counters().communicators == communicators);
  wait_for_all();
}

TEST_CASE("an exception that unwinds only one rank lets no rank hang") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", short_timeout()};
  const device::DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
  if (rank() == 0) {
    try {
      const Mesh inner = std::move(mesh);
      throw std::runtime_error{"user code fails"};
    } catch (const std::runtime_error&) {
    }
  } else {
    // The others are told by NCCL, or by the deadline of close().
    bool thrown = false;
    try {
      for (int i = 0; i < 20; ++i) {
        mesh["tp"].all_reduce(value.span());
        (void)cudaStreamSynchronize(nullptr);
      }
      mesh.close();
    } catch (const Error& error) {
      thrown = true;
    }
    CHECK(thrown);
  }
  wait_for_all();
}

TEST_CASE("a second close does nothing") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  mesh.close();
  mesh.close();
  CHECK(mesh.is_closed());
}

TEST_CASE("ranks wait for an init that begins late") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  inject("late:rank=0,ms=150");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  mesh.close();
  inject("");
}

TEST_CASE("a mesh that is destroyed without close aborts its communicators locally") {
  const FakeNcclCounters before = counters();
  {
    const Mesh dropped{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=auto,tp=2 ; all=dp*tp" : "tp=auto",
                       test_platform::options()};
  }
  CHECK(counters().communicators == before.communicators);
  CHECK(counters().lone_aborts == before.lone_aborts);  // all in one group call
  wait_for_all();
}

TEST_CASE("many dynamic groups on devices come and go without a trace") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  std::vector<Rank> reversed;
  for (int r = size() - 1; r >= 0; --r) reversed.emplace_back(r);
  const FakeNcclCounters before = counters();
  const device::DeviceBuffer<std::int32_t> mine{
      std::span<const std::int32_t>{std::vector<std::int32_t>{rank()}}};
  device::DeviceBuffer<std::int32_t> all{static_cast<std::size_t>(size())};
  // A device takes up to a second for each init. What each round leaves is counted exactly, so a
  // hundred rounds show as much as a thousand.
  const bool is_double = test_platform::is_double();
  const int rounds = is_double && size() == 2 ? 100 : is_double ? 20 : 5;
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                         std::filesystem::directory_iterator{});
  };
  const auto open_before = descriptors();
  for (int round = 0; round < rounds; ++round) {
    const auto group = mesh.new_group(reversed);
    group->all_gather(mine.span(), all.span());
    const auto values = all.download(StreamRef{});
    for (int k = 0; k < size(); ++k) CHECK(values[static_cast<std::size_t>(k)] == size() - 1 - k);
    mesh.close(*group);
  }
  const FakeNcclCounters after = counters();
  CHECK(after.communicators == before.communicators);
  CHECK(after.roots == before.roots);
  CHECK(after.segments == before.segments);
  CHECK(after.threads == before.threads);
  // NCCL and the driver may keep a few for later use.
  CHECK(descriptors() <= open_before + (is_double ? 0 : 16));
  mesh.close();
}

TEST_CASE("the next call throws an asynchronous error, and the group is broken") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  MeshOptions options = short_timeout();
  options.check = false;  // which waits for the members that have not found the error
  options.device_deadline = Deadline::Duration{1};  // NCCL tells nobody on the same node
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  const device::DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
  if (rank() == 1) inject("async:after=1,code=6");
  const FakeNcclCounters before = counters();
  bool thrown = false;
  int done = 0;
  try {
    for (; done < 50; ++done) {
      tp.all_reduce(value.span());
      (void)cudaStreamSynchronize(nullptr);
    }
  } catch (const Error& error) {
    thrown = true;
  }
  CHECK(thrown);
  // The rank with the error finds it before it calls NCCL again.
  if (rank() == 1) CHECK(counters().calls[fake_all_reduce] - before.calls[fake_all_reduce] == done);
  CHECK_THROWS_WITH_AS(tp.all_reduce(value.span()), doctest::Contains("broken"), ClosedError);
  inject("");
  mesh.abort();
  wait_for_all();
}

TEST_CASE(
    "the wait for an operation throws its asynchronous error, although the stream has ended") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", short_timeout()};
  auto& tp = mesh["tp"];
  const device::DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
  if (rank() == 1) inject("async:after=0,code=6");
  Work work = tp.all_reduce_async(value.span(), tp.stream());
  wait_for_all();  // no rank fails before all have issued
  if (rank() == 1) {
    (void)cudaStreamSynchronize(static_cast<cudaStream_t>(tp.stream().native()));
    CHECK_THROWS_AS(work.wait(Deadline::Duration{5}), nccl::NcclError);
    CHECK_THROWS_WITH_AS(tp.all_reduce(value.span()), doctest::Contains("broken"), ClosedError);
  }
  inject("");
  wait_for_all();  // no rank aborts before all have issued
  mesh.abort();
  wait_for_all();
}

TEST_CASE(
    "a mesh with a broken group closes: broken communicators are aborted, the others finalised") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  const FakeNcclCounters before = counters();
  const FakeCudaCounters cuda_before = test_platform::cuda();
  {
    MeshOptions options = short_timeout();
    options.names["tp"].duplicates = {"side"};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    (void)mesh.duplicate("tp", "side").stream();
    const device::DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
    if (rank() == 1) inject("async:name=tp,after=0,code=6");
    const auto fails = [&] {
      for (int i = 0; i < 50; ++i) {
        mesh["tp"].all_reduce(value.span());
        (void)cudaStreamSynchronize(nullptr);
      }
    };
    if (rank() == 1)
      CHECK_THROWS_AS(fails(), Error);
    else
      mesh["tp"].all_reduce(value.span());  // waits for rank 1, which has failed
    inject("");
    const Deadline soon{Deadline::Duration{10}};
    bool throws = false;
    try {
      mesh.close();
    } catch (const Error&) {
      throws = true;
    }
    // Rank 1 knows of its group. On one host, another rank learns nothing: it finalises both
    // communicators in one group of NCCL until its limit, and aborts them.
    if (rank() != 1) CHECK(throws);
    CHECK(!soon.passed());
    CHECK(mesh.is_closed());
    CHECK(counters().communicators == before.communicators);
  }
  // A close that ends because of the calls of rank 1 keeps the streams as long as the mesh exists.
  CHECK(test_platform::cuda().streams == cuda_before.streams);
  wait_for_all();  // the others took seconds longer, and the next mesh has a short limit
}

TEST_CASE(
    "a wait of the group finds an asynchronous error that a wait for the stream does not find") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", short_timeout()};
  auto& tp = mesh["tp"];
  const device::DeviceBuffer<float> value{std::span<const float>{std::vector<float>{1}}};
  tp.all_reduce(value.span(), tp.stream());
  tp.wait(tp.stream());
  wait_for_all();
  inject("async:code=6");
  tp.all_reduce(value.span(), tp.stream());
  wait_for_all();  // the first rank that finds the error tells the others
  CHECK_THROWS_AS(tp.wait(tp.stream()), nccl::NcclError);
  CHECK_THROWS_AS(tp.wait(tp.stream()), Error);
  inject("");
  wait_for_all();
  mesh.abort();
}

TEST_CASE("abort is local and leaves every group broken") {
  const long communicators = counters().communicators;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  mesh.abort();
  CHECK(counters().communicators == communicators);
  const device::DeviceBuffer<float> value{1};
  CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(value.span()), doctest::Contains("aborted"),
                       ClosedError);
  wait_for_all();
}
