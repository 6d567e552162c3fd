// SPDX-License-Identifier: BSD-3-Clause
// How single names are opened: several IDs, later, more than once.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "device/square_mesh.hpp"
#include "device/test_platform.hpp"
#include "place/count.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using device::DeviceBuffer;
using rankmesh_test::check_sum;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::square;

TEST_CASE("several unique IDs per communicator, created by ranks that are spread over it") {
  const bool is_offered = nccl::Library::load().CommInitRankScalable != nullptr;  // since 2.23
  MeshOptions options = test_platform::options();
  options.names["tp"].ranks_per_id = 4;
  options.names["all"].ranks_per_id = 4;
  const FakeNcclCounters before = test_platform::nccl();
  Mesh mesh{MPI_COMM_WORLD, square(), options};
  long made = test_platform::nccl().unique_ids - before.unique_ids;
  check_sum(mesh["tp"]);
  check_sum(mesh["all"]);
  const std::int64_t ids = mesh.plan().unique_ids(mesh.plan().index_of("all"), size());
  CHECK(ids == (size() + 3) / 4);
  if (size() > 1)
    CHECK(mesh["all"].bootstrap()->method ==
          (ids == 1 || !is_offered ? "unique ID" : std::to_string(ids) + " unique IDs"));
  mesh.close();
  MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (test_platform::is_double())  // nothing counts unique IDs elsewhere
    CHECK(made == (is_offered ? count(mesh.plan()).unique_ids : count(mesh.plan()).communicators));
}

TEST_CASE("lazy names are opened on request, by all of their ranks") {
  MeshOptions options = test_platform::short_timeout();
  options.names["tp"].lazy = true;
  options.names["dp"].lazy = true;
  const long before = test_platform::nccl().communicators;
  Mesh mesh{MPI_COMM_WORLD, square(), options};
  check_sum(mesh["all"]);
  const bool is_shared = size() % 2 != 0;  // tp is all, which is eager
  const DeviceBuffer<float> one{1};
  if (!is_shared) {
    CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(one.span()), doctest::Contains("is not open"),
                         NoDeviceError);
    CHECK(mesh["tp"].bootstrap() == nullptr);
  }
  mesh.open({"tp", "dp"});
  check_sum(mesh["tp"]);
  check_sum(mesh["dp"]);
  mesh.open({"tp", "dp"});  // nothing is left to open
  check_sum(mesh["tp"]);
  CHECK_THROWS_AS(mesh.open({"zz"}), UnknownName);
  mesh.close();
  CHECK(test_platform::nccl().communicators == before);
}

TEST_CASE(
    "two ranks that open names in different order throw at once, and can do it right "
    "afterwards") {
  NEEDS_MULTIPLE_OF(2);
  MeshOptions options = test_platform::short_timeout();
  options.names["tp"].lazy = true;
  options.names["dp"].lazy = true;
  Mesh mesh{MPI_COMM_WORLD, square(), options};
  const char* first = rank() == 0 ? "tp" : "dp";
  CHECK_THROWS_WITH_AS(mesh.open({first}), doctest::Contains("families to open"), MismatchError);
  mesh.open({"tp"});
  mesh.open({"dp"});
  check_sum(mesh["tp"]);
  check_sum(mesh["dp"]);
  mesh.close();
}

TEST_CASE("a failed open leaves the mesh unchanged") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  MeshOptions options = test_platform::short_timeout();
  options.names["tp"].lazy = true;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  if (rank() == 1) test_platform::inject("init:code=3");
  CHECK_THROWS_AS(mesh.open({"tp"}), MismatchError);
  if (rank() == 1) test_platform::inject("");
  mesh.open({"tp"});
  check_sum(mesh["tp"]);
  mesh.close();
}

TEST_CASE("a partial name is opened by its own ranks only") {
  NEEDS_MULTIPLE_OF(4);
  MeshOptions options = test_platform::short_timeout();
  const std::string preset = "megatron:pp=4,world_size=" + std::to_string(size());
  options.names["embd"].lazy = true;
  Mesh mesh{MPI_COMM_WORLD, preset, options};
  const bool is_member = mesh.plan().groups("embd").find(mesh.rank()).has_value();
  if (is_member) {
    mesh.open({"embd"});
    check_sum(mesh["embd"]);
  } else {
    CHECK_THROWS_AS(mesh.open({"embd"}), NotMember);
  }
  mesh.close();
}

TEST_CASE("duplicates communicators are the same group on another communicator") {
  MeshOptions options = test_platform::options();
  options.names["tp"].duplicates = {"side", "third"};
  const FakeNcclCounters before = test_platform::nccl();
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  if (test_platform::is_double())
    CHECK(test_platform::nccl().communicators - before.communicators ==
          static_cast<long>(mesh.plan().communicators(mesh.rank()).size()));
  if (size() >= 3 && test_platform::is_double()) {  // the leaders are three ranks in a row
    const std::int64_t leader = mesh.plan().leader(mesh.plan().index_of("tp"), 0).value();
    const std::int64_t place = (mesh["tp"].rank_in_group().value() - leader + size()) % size();
    CHECK(test_platform::nccl().unique_ids - before.unique_ids == (place < 3 ? 1 : 0));
  }
  GroupCoordinator& side = mesh.duplicate("tp", "side");
  CHECK(side.name() == "tp[side]");
  CHECK(side.ranks() == mesh["tp"].ranks());
  check_sum(side);
  check_sum(mesh.duplicate("tp", "third"));
  check_sum(mesh["tp"]);
  std::vector<int> host{1};
  side.all_reduce(host);
  CHECK(host.front() == size());
  if (size() > 1) {
    CHECK(side.native_nccl() != mesh["tp"].native_nccl());
    int result = 0;
    MPI_Comm_compare(side.native_mpi(), mesh["tp"].native_mpi(), &result);
    CHECK(result == MPI_CONGRUENT);
  }
  CHECK_THROWS_WITH_AS(mesh.duplicate("tp", "zz"),
                       doctest::Contains("no duplicate communicator 'zz'"), UnknownName);
  mesh.close();
}

TEST_CASE(
    "a second thread that issues for the device, in whichever mesh, is refused before NCCL sees "
    "it") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  device::DeviceBuffer<std::int32_t> values{std::vector<std::int32_t>{1}};
  if (size() > 1) {
    const device::Claim::Issuing other{
        device::Claim{*mesh.device()}};  // as if in another thread's operation
    CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(values.span()),
                         doctest::Contains("two threads issue"), UsageError);
  }
  mesh["tp"].all_reduce(values.span());
  CHECK(values.download(StreamRef{}) == std::vector<std::int32_t>{size()});
  mesh.close();
  CHECK(!device::claimed());
}

TEST_CASE("the coordinator reports how its communicator was created") {
  NEEDS_RANKS(2);
  if (test_platform::is_double()) test_platform::inject("late:rank=0,ms=150");
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", test_platform::options()};
  if (test_platform::is_double()) test_platform::inject("");
  const BootstrapReport* report = mesh["tp"].bootstrap();
  REQUIRE(report != nullptr);
  CHECK(report->opened_together == 1);
  // The others may come even later than the rank that is late.
  CHECK(report->inits >= (test_platform::is_double() && rank() == 0 ? 0.1 : 0));
  CHECK(report->warm_up > 0);
  if (test_platform::is_double()) CHECK(report->device_memory == 8 << 20);  // what the double takes
  mesh.close();
}

TEST_CASE("ranks share a device only if they are on one node and see the same UUID") {
  const auto identity = [](unsigned char last) {
    device::Identity result{};
    result.uuid[15] = last;
    result.bus_id[0] = 'b';
    return result;
  };
  const std::vector<device::Identity> same{identity(7), identity(7)};
  const std::vector<device::Identity> different{identity(7), identity(8)};
  const std::vector<std::int32_t> one_node{3, 3};
  const std::vector<std::int32_t> two_nodes{3, 4};
  CHECK(device::shared_device(two_nodes, same) == "");
  CHECK(device::shared_device(one_node, different) == "");
  CHECK(device::shared_device({}, {}) == "");
  const std::string shared = device::shared_device(one_node, same);
  CHECK_CONTAINS(shared, "0 and 1");
  CHECK_CONTAINS(shared, "node 3");
  // The first pair is named, whatever lies between.
  const std::vector<std::int32_t> nodes{0, 1, 1, 0, 1};
  const std::vector<device::Identity> identities{identity(1), identity(1), identity(2), identity(2),
                                                 identity(2)};
  CHECK_CONTAINS(device::shared_device(nodes, identities), "2 and 4");
}

TEST_CASE("the ranks that make the unique IDs of one communicator are spread evenly over it") {
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  SKIP_UNLESS(nccl::Library::load().CommInitRankScalable != nullptr, "needs NCCL 2.23");
  NEEDS_RANKS(2);
  for (const int ranks_per_id : {1, 2, 4}) {
    if (size() % ranks_per_id != 0) continue;
    CAPTURE(ranks_per_id);
    MeshOptions options = test_platform::options();
    options.names["tp"].ranks_per_id = ranks_per_id;
    const long before = test_platform::nccl().unique_ids;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const int mine = static_cast<int>(test_platform::nccl().unique_ids - before);
    std::vector<int> made(static_cast<std::size_t>(size()));
    MPI_Allgather(&mine, 1, MPI_INT, made.data(), 1, MPI_INT, MPI_COMM_WORLD);
    // One of every `ranks_per_id` neighbours.
    for (int r = 0; r < size(); ++r) {
      int sum = 0;
      for (int k = 0; k < ranks_per_id; ++k)
        sum += made[static_cast<std::size_t>((r + k) % size())];
      CAPTURE(r);
      CHECK(sum == 1);
    }
    mesh.close();
  }
}
