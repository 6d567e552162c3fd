// SPDX-License-Identifier: BSD-3-Clause
// The options of a family that reach NCCL.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "device/square_mesh.hpp"
#include "device/test_platform.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::check_sum;
using rankmesh_test::rank;
using rankmesh_test::square;

TEST_CASE("NCCL's options and the stream's priority are those of the name") {
  MeshOptions options = test_platform::options();
  options.names["tp"] = {.priority = -1,
                         .min_ctas = 1,
                         .max_ctas = 2,
                         .cga_cluster_size = 2,
                         .traffic_class = 3,
                         .cta_policy = 1,
                         .nvls_ctas = 5,
                         .graph_usage_mode = 0};
  options.names["all"].blocking = false;
  Mesh mesh{MPI_COMM_WORLD, square(), options};
  check_sum(mesh["tp"]);
  check_sum(mesh["all"]);
  int priority = 0;
  CHECK(cudaStreamGetPriority(static_cast<cudaStream_t>(mesh["tp"].stream().native()), &priority) ==
        cudaSuccess);
  if (mesh["tp"].size() > 1 && test_platform::is_double()) {
    CHECK(priority == -1);
    const auto config_of =
        test_platform::nccl_hook<decltype(&fake_nccl_config)>("fake_nccl_config");
    FakeNcclConfig config{};
    REQUIRE(config_of(mesh["tp"].native_nccl(), &config) == 0);
    const bool blocks = nccl::blocks_after_creation(nccl::Library::load(), true);
    CHECK(config.blocking == (blocks ? 1 : 0));
    CHECK(config.min_ctas == 1);
    CHECK(config.max_ctas == 2);
    CHECK(config.cga_cluster_size == 2);
    const int version = nccl::Library::load().version();
    if (version >= 22600) CHECK(config.traffic_class == 3);
    if (version >= 22700) CHECK(config.cta_policy == 1);
    if (version >= 22700) CHECK(config.nvls_ctas == 5);
    CHECK(config.graph_usage_mode == (version >= 22900 ? 0 : 2));
    REQUIRE(config_of(mesh["all"].native_nccl(), &config) == 0);
    CHECK(config.blocking == (nccl::forced_blocking().value_or(false) ? 1 : 0));
    if (version >= 22700)
      CHECK(std::string{test_platform::nccl_hook<decltype(&fake_nccl_name)>("fake_nccl_name")(
                mesh["all"].native_nccl())} == "all");
  }
  mesh.close();
}

TEST_CASE("NCCL's options: copy engines are asked for from 2.28 on, and missed before") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(test_platform::is_double(), "needs the CPU doubles of CUDA and NCCL");
  std::string said;
  MeshOptions options = test_platform::options();
  options.names["tp"].cta_policy = 2;
  options.log = [&](LogLevel, std::string_view message) { said += std::string{message} + "\n"; };
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  check_sum(mesh["tp"]);
  FakeNcclConfig config{};
  const auto config_of = test_platform::nccl_hook<decltype(&fake_nccl_config)>("fake_nccl_config");
  REQUIRE(config_of(mesh["tp"].native_nccl(), &config) == 0);
  const bool has_copy_engines = nccl::Library::load().version() >= 22800;
  CHECK((config.cta_policy == 2) == has_copy_engines);
  if (has_copy_engines)
    CHECK_LACKS(said, "cta_policy = 2 needs NCCL 2.28");
  else
    CHECK_CONTAINS(said, "cta_policy = 2 needs NCCL 2.28");
  mesh.close();
}

TEST_CASE("each limit of thread blocks may be set alone") {
  for (const bool is_lower : {true, false}) {
    CAPTURE(is_lower);
    MeshOptions options = test_platform::options();
    (is_lower ? options.names["tp"].min_ctas : options.names["tp"].max_ctas) = 4;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    check_sum(mesh["tp"]);
    mesh.close();
  }
}

TEST_CASE("environment variables that change communicators are reported and not changed") {
  std::string said;
  MeshOptions options = test_platform::options();
  options.log = [&](LogLevel, std::string_view message) { said += std::string{message} + "\n"; };
  for (const char* value : {"", "0", "1"}) {  // the first two mean the same as no value
    CAPTURE(value);
    const bool is_set = std::string_view{value} == "1";
    said.clear();
    *value == '\0' ? unsetenv("CUDA_LAUNCH_BLOCKING") : setenv("CUDA_LAUNCH_BLOCKING", value, 1);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    if (is_set)
      CHECK_CONTAINS(said, "CUDA_LAUNCH_BLOCKING is set");
    else
      CHECK_LACKS(said, "CUDA_LAUNCH_BLOCKING is set");
    mesh.close();
  }
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

TEST_CASE("options that differ between ranks throw before anything is created") {
  NEEDS_RANKS(2);
  MeshOptions options = test_platform::short_timeout();
  if (rank() == 1) options.names["tp"].max_ctas = 4;
  CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=auto", options}),
                       doctest::Contains("options of families"), MismatchError);
}
