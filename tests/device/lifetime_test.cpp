// SPDX-License-Identifier: BSD-3-Clause
// What device operations refer to while a mesh, a group or a batch ends in an unusual way.
#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "test_platform.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using device::Stream;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;
using test_platform::inject;
using test_platform::is_double;
using test_platform::on_device;

TEST_CASE("an operation in flight fails when its mesh is aborted") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  DeviceBuffer<float> values = on_device(std::vector<float>{1});
  Work work = mesh["tp"].all_reduce_async(values.span());
  wait_for_all();
  mesh.abort();
  CHECK_THROWS_WITH_AS((void)work.test(), doctest::Contains("aborted"), ClosedError);
  CHECK_NOTHROW(mesh.progress());
  wait_for_all();
}

TEST_CASE("a rank that fails in an opening ends it, also after a group that only some ranks made") {
  NEEDS_RANKS(3);
  SKIP_UNLESS(is_double(), "faults are injected into the double");
  MeshOptions options = test_platform::options();
  options.timeout = Deadline::Duration{30};
  options.names["tp"].lazy = true;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  std::shared_ptr<GroupCoordinator> pair;
  if (rank() < 2) pair = mesh.new_group({{Rank{0}, Rank{1}}});
  wait_for_all();
  if (rank() == 1) inject("init:rank=1,name=tp,code=3");
  const Deadline early{Deadline::Duration{15}};
  // With keys that differ between members, the others would wait until the timeout.
  try {
    mesh.open({"tp"});
    FAIL("rank 1 cannot open its communicator");
  } catch (const Error& error) {
    CHECK_CONTAINS(error.message(), "rank 1");
  }
  CHECK_FALSE(early.passed());
  inject("");
  wait_for_all();
}

TEST_CASE("a dynamic group of one rank does not wait for the device") {
  SKIP_UNLESS(is_double(), "the double's host functions may wait for the host");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  const device::Stream stream = device::Stream::create();
  static std::atomic<bool> may_end;
  may_end = false;
  const auto wait_for_host = [](void*) {
    while (!may_end) std::this_thread::yield();
  };
  REQUIRE(cudaLaunchHostFunc(stream.native(), wait_for_host, nullptr) == cudaSuccess);
  const auto alone = mesh.new_group({{Rank{rank()}}});
  CHECK_FALSE(stream.query());  // the group exists, and the device is still at work
  may_end = true;
  stream.wait(Deadline{Deadline::Duration{30}});
  DeviceBuffer<float> values = on_device(std::vector<float>{7});
  alone->all_reduce(values.span());
  alone->wait(StreamRef{});
  mesh.close();
}

TEST_CASE("a batch that fails breaks the groups whose operations NCCL has taken, and no other") {
  NEEDS_RANKS(2);
  NEEDS_AT_MOST_RANKS(3);
  SKIP_UNLESS(is_double(), "faults are injected into the double");
  MeshOptions options = test_platform::options();
  options.timeout = Deadline::Duration{1.5};  // rank 1 waits so long
  Mesh mesh{MPI_COMM_WORLD, "dp=1,tp=auto", options};
  DeviceBuffer<float> values = on_device(std::vector<float>{1});
  DeviceBuffer<float> others = on_device(std::vector<float>{1});
  if (rank() == 1) inject("async:name=tp,after=0,code=6");
  mesh["tp"].all_reduce(values.span());
  if (rank() == 1) (void)cudaStreamSynchronize(nullptr);
  wait_for_all();
  if (rank() == 1) {  // alone: the others would wait for it in NCCL
    NcclGroup together{mesh};
    mesh["dp"].all_reduce(others.span());
    mesh["tp"].all_reduce(values.span());
    CHECK_THROWS_AS(together.end(), Error);
  }
  inject("");
  CHECK_NOTHROW(mesh["dp"].all_reduce(others.span()));
  wait_for_all();
  mesh.abort();
  wait_for_all();
}

TEST_CASE("a batch that another thread disturbs leaves NCCL's group") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
  NcclGroup together{mesh};
  std::atomic<bool> is_issuing{false};
  std::atomic<bool> may_end{false};
  std::thread other{[&] {
    const device::Claim claim{*device::claimed()};
    const device::Claim::Issuing issuing{claim};
    is_issuing = true;
    while (!may_end) std::this_thread::yield();
  }};
  while (!is_issuing) std::this_thread::yield();
  CHECK_THROWS_WITH_AS(together.end(), doctest::Contains("two threads"), UsageError);
  may_end = true;
  other.join();
  NcclGroup next_one{mesh};
  CHECK_NOTHROW(next_one.end());
  mesh.close();
}

TEST_CASE("a mesh that is destroyed inside a batch leaves NCCL's group") {
  {
    std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "tp=auto", test_platform::options()};
    NcclGroup together{*mesh};
    mesh.reset();
  }
  // A call of this mesh would otherwise join that group, and never be issued.
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  const Stream stream = Stream::create();
  const auto values = on_device<float>({1, 2});
  {
    NcclGroup together{mesh};
    mesh["tp"].all_reduce(values.span(), stream);
  }
  CHECK(values.download(stream)[1] == 2.0F * static_cast<float>(size()));
  mesh.close();
}

TEST_CASE("a mesh that is destroyed without close gives its device back") {
  std::shared_ptr<GroupCoordinator> alone;
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::short_timeout()};
    alone = mesh.new_group({{Rank{rank()}}});
    CHECK(device::claimed().has_value());
    wait_for_all();
  }
  CHECK_FALSE(device::claimed().has_value());  // although the program still holds a group
  CHECK_THROWS_AS((void)alone->stream(), ClosedError);
  wait_for_all();
}

TEST_CASE("a closed group of one explains that it has no transport") {
  MeshOptions options;
  options.devices = DeviceUse::off;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  const auto alone = mesh.new_group({{Rank{rank()}}});
  CHECK(alone->explain(Operation::all_reduce, 64).transport == "local");
  mesh.close(*alone);
  CHECK(alone->explain(Operation::all_reduce, 64).transport.empty());
  mesh.close();
}

TEST_CASE("deferred operations learn that their batch failed") {
  NEEDS_RANKS(2);
  MeshOptions options = test_platform::short_timeout();
  options.devices = DeviceUse::off;
  std::vector<float> values(4, 1.0F);
  {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    Mesh other{MPI_COMM_WORLD, "tp=auto", options};
    auto symmetric = other.allocate_symmetric<float>(4096, {"tp"});
    NcclGroup together{mesh};
    Work failed = mesh["tp"].all_reduce_async(symmetric);
    Work not_issued = mesh["tp"].all_reduce_async(values);
    other.close();
    CHECK_THROWS_AS(together.end(), ClosedError);
    CHECK_THROWS_AS((void)failed.test(), ClosedError);
    CHECK_THROWS_AS((void)not_issued.test(), ClosedError);
    mesh.close();
  }
  wait_for_all();
}
