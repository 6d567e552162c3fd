// SPDX-License-Identifier: BSD-3-Clause
// Families whose communicators are split from those of another.
#include <doctest/doctest.h>

#include <string>

#include "device/square_mesh.hpp"
#include "device/test_platform.hpp"
#include "place/count.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::check_sum;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::square;

TEST_CASE("names that are split from a parent need no unique ID") {
  MeshOptions options = test_platform::options();
  options.names["tp"].split_from = "all";
  options.names["dp"] = {.split_from = "all", .share_resources = true, .duplicates = {"side"}};
  const FakeNcclCounters before = test_platform::nccl();
  Mesh mesh{MPI_COMM_WORLD, square(), options};
  long made = test_platform::nccl().unique_ids - before.unique_ids;
  for (const char* name : {"tp", "dp", "all"}) check_sum(mesh[name]);
  check_sum(mesh.duplicate("dp", "side"));
  if (mesh["tp"].size() > 1 && mesh["tp"].size() < size())
    CHECK(mesh["tp"].bootstrap()->method == "split of 'all'");
  mesh.close();
  MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (test_platform::is_double()) {  // nothing counts unique IDs elsewhere
    CHECK(made == count(mesh.plan()).unique_ids);
    CHECK(test_platform::nccl().communicators == before.communicators);
    CHECK(test_platform::nccl().segments == before.segments);
  }
}

TEST_CASE("resources are shared through the parent's configuration, where NCCL reads the option") {
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  NEEDS_RANKS(2);
  for (const bool share : {false, true}) {
    MeshOptions options = test_platform::options();
    options.names["dp"] = {.split_from = "all", .share_resources = share};
    Mesh mesh{MPI_COMM_WORLD, square(), options};
    const auto config_of =
        test_platform::nccl_hook<decltype(&fake_nccl_config)>("fake_nccl_config");
    FakeNcclConfig config{};
    REQUIRE(config_of(mesh["all"].native_nccl(), &config) == 0);
    CHECK(config.split_share == (share ? 1 : 0));
    mesh.close();
  }
}

TEST_CASE("a rank may be in no child of a split") {
  NEEDS_MULTIPLE_OF(4);
  MeshOptions options = test_platform::short_timeout();
  options.names["embd"].split_from = "pp";
  Mesh mesh{MPI_COMM_WORLD, "megatron:pp=4,world_size=" + std::to_string(size()), options};
  if (mesh.plan().groups("embd").find(mesh.rank())) check_sum(mesh["embd"]);
  check_sum(mesh["pp"]);
  mesh.close();
}

TEST_CASE("a split that fails on one rank: all ranks throw and free everything") {
  NEEDS_RANKS(4);
  NEEDS_MULTIPLE_OF(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  MeshOptions options = test_platform::short_timeout();
  options.names["tp"].split_from = "all";
  const long before = test_platform::nccl().communicators;
  if (rank() == 1) test_platform::inject("init:name=tp,code=3");
  CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, square(), options}),
                       doctest::Contains("split of 'tp'"), MismatchError);
  if (rank() == 1) test_platform::inject("");
  CHECK(test_platform::nccl().communicators == before);
}

TEST_CASE("a later split that fails ends the parent too, since NCCL may still use the child") {
  NEEDS_RANKS(3);
  NEEDS_AT_MOST_RANKS(5);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  MeshOptions options = test_platform::short_timeout();  // the other ranks wait for half of it
  options.names["tp"].split_from = "all";
  options.names["tp"].lazy = true;
  const long before = test_platform::nccl().communicators;
  Mesh mesh{MPI_COMM_WORLD, square(), options};
  const long opened = test_platform::nccl().communicators;
  if (rank() == 1) test_platform::inject("init:name=tp,code=3");
  CHECK_THROWS_WITH_AS(mesh.open({"tp"}), doctest::Contains("split of 'tp'"), MismatchError);
  if (rank() == 1) test_platform::inject("");
  CHECK(test_platform::nccl().communicators == opened - 1);
  mesh.close();
  CHECK(test_platform::nccl().communicators == before);
}

TEST_CASE("a partial name that is split from another is opened by all ranks of its parent") {
  NEEDS_MULTIPLE_OF(4);
  MeshOptions options = test_platform::short_timeout();
  options.names["embd"] = {.split_from = "pp", .lazy = true};
  Mesh mesh{MPI_COMM_WORLD, "megatron:pp=4,world_size=" + std::to_string(size()), options};
  mesh.open({"embd"});
  if (mesh.plan().groups("embd").find(mesh.rank())) {
    check_sum(mesh["embd"]);
    CHECK(mesh["embd"].bootstrap()->method == "split of 'pp'");
  }
  mesh.close();
}
