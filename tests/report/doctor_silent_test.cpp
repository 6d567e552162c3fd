// SPDX-License-Identifier: BSD-3-Clause
// What the rules of doctor must not report.
#include <doctest/doctest.h>

#include <string>

#include "doctor_job.hpp"

using rankmesh_test::Facts;
using rankmesh_test::healthy_job;
using rankmesh_test::ids_of;

TEST_CASE("variables that launchers set differently on each rank") {
  Facts job = healthy_job();
  for (auto& facts : job)
    for (const char* name :
         {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
          "OMPI_FILE_LOCATION", "OMPI_FIRST_RANKS", "OMPI_ARGV", "OMPI_MCA_ess_base_vpid",
          "OMPI_MCA_orte_ess_node_rank", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_initial_wdir",
          "OMPI_MCA_shmem_RUNTIME_QUERY_hint", "OMPI_MCA_mpi_oversubscribe", "PMIX_RANK",
          "PMI_RANK", "SLURM_PROCID", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "CUDA_VISIBLE_DEVICES"})
      facts.variables[name] = std::to_string(facts.rank);
  CHECK(ids_of(job) == "");
}

TEST_CASE("a launcher that gives no size, and a nested launcher") {
  Facts job = healthy_job(1, 1);
  job[0].variables = {};
  CHECK(ids_of(job) == "");
  job[0].variables = {{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "16"}};
  CHECK(ids_of(job) == "");
}

TEST_CASE("a library that no rank has") {
  Facts job = healthy_job();
  for (auto& facts : job) facts.libraries[1] = {"NCCL", "", ""};
  CHECK(ids_of(job) == "");
}

TEST_CASE("little locked memory without RDMA, and a limit that is large enough") {
  Facts job = healthy_job();
  for (auto& facts : job) {
    facts.rdma_devices.clear();
    facts.limits.locked_memory = 65536;
    facts.limits.descriptors = 1024;
  }
  CHECK(ids_of(job) == "");
}

TEST_CASE("descriptors: TCP needs one for each rank, RDMA does not") {
  Facts job = healthy_job(200, 2);
  for (auto& facts : job) facts.limits.descriptors = 400;
  CHECK(ids_of(job) == "");
  for (auto& facts : job) facts.rdma_devices.clear();
  CHECK(ids_of(job) == "descriptors");
}

TEST_CASE("the scope of ptrace that distributions choose") {
  Facts job = healthy_job();
  for (auto& facts : job) facts.ptrace_scope = 1;
  CHECK(ids_of(job) == "");
}

TEST_CASE("ranks that are not bound, or bound to sockets") {
  Facts job = healthy_job(2, 4);
  for (auto& facts : job) facts.cores = {0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(ids_of(job) == "");
  for (auto& facts : job)
    facts.cores = facts.local_rank < 2 ? std::vector{0, 1, 2, 3} : std::vector{4, 5, 6, 7};
  CHECK(ids_of(job) == "");
}

TEST_CASE("the same cores on different nodes are different cores") {
  Facts job = healthy_job(4, 1);
  for (auto& facts : job) facts.cores = {0, 1};
  CHECK(ids_of(job) == "");
}

TEST_CASE("OMP_NUM_THREADS without a number") {
  Facts job = healthy_job();
  for (auto& facts : job) facts.variables["OMP_NUM_THREADS"] = "many";
  CHECK(ids_of(job) == "");
}

TEST_CASE("a clock within the tolerance, or within the error of its measurement") {
  Facts job = healthy_job();
  job[2].clock = {0.05, 1e-4};
  job[4].clock = {0.5, 0.45};
  CHECK(ids_of(job) == "");
}

TEST_CASE("connections that differ a little, and two nodes") {
  Facts job = healthy_job();
  job[0].link->latency = 4e-6;
  job[2].link->bandwidth = 14e9;
  CHECK(ids_of(job) == "");
  job = healthy_job(2, 2);
  job[0].link->latency = 1;
  job[0].link->bandwidth = 1;
  CHECK(ids_of(job) == "");
}

TEST_CASE("equal UUIDs on different nodes, and jobs without devices") {
  Facts job = healthy_job();
  job[2].devices[0].uuid = job[0].devices[0].uuid;
  CHECK(ids_of(job) == "");
  for (auto& facts : job) {
    facts.devices.clear();
    facts.device = -1;
    facts.has_device_nodes = false;
    facts.why_no_devices = "no CUDA driver was found";
  }
  CHECK(ids_of(job) == "");
}

TEST_CASE("names of interfaces and devices as NCCL reads them") {
  for (const char* value : {"eth", "eth0", "=eth0", "^docker,lo", "^=docker0", "ib,eth", "lo"}) {
    CAPTURE(value);
    Facts job = healthy_job();
    for (auto& facts : job) facts.variables["NCCL_SOCKET_IFNAME"] = value;
    CHECK(ids_of(job) == "");
  }
  for (const char* value : {"=et", "^eth,lo", "eth1", "=lo0"}) {
    CAPTURE(value);
    Facts job = healthy_job();
    for (auto& facts : job) facts.variables["NCCL_SOCKET_IFNAME"] = value;
    CHECK(ids_of(job) == "nccl-interface");
  }
  for (const char* value : {"mlx5", "=mlx5_0:1", "^mlx5_1"}) {
    CAPTURE(value);
    Facts job = healthy_job();
    for (auto& facts : job) facts.variables["NCCL_IB_HCA"] = value;
    CHECK(ids_of(job) == "");
  }
}

TEST_CASE("a network of a plugin that is found, and the networks of NCCL itself") {
  Facts job = healthy_job();
  for (auto& facts : job) {
    facts.variables["NCCL_NET"] = "AWS Libfabric";
    facts.has_net_plugin = true;
  }
  CHECK(ids_of(job) == "");
  for (auto& facts : job) facts.variables["NCCL_NET"] = "IB", facts.has_net_plugin = false;
  CHECK(ids_of(job) == "");
  job = healthy_job(1, 2);
  for (auto& facts : job) facts.variables["NCCL_NET"] = "socket";
  CHECK(ids_of(job) == "");
}
