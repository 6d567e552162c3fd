// SPDX-License-Identifier: BSD-3-Clause
// Each rule of doctor finds what it looks for, and nothing else is found then.
#include "report/doctor.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>

#include "doctor_job.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "support/checks.hpp"

using rankmesh_test::Facts;
using rankmesh_test::findings_of;
using rankmesh_test::healthy_job;
using rankmesh_test::ids_of;

namespace {

// One mistake, and what doctor has to say about it. The job has 4 nodes of 2 ranks.
struct Mistake {
  std::string id;
  std::function<void(Facts&)> make;
  std::vector<std::int64_t> ranks;
  const char* part;  // of the text
};

void keep_one_rank(Facts& job) {
  job.resize(1);
  job[0].world_size = 1;
  job[0].link.reset();
}

const std::vector<Mistake> mistakes = {
    {"launcher", keep_one_rank, {}, "OMPI_COMM_WORLD_SIZE=8"},
    {"deaths",
     [](Facts& job) {
       for (auto& facts : job) {
         facts.mpi_library = "Open MPI v4.1.4, package: x";
         facts.variables["RANKMESH_GUARD"] = "9:81";
       }
     },
     {},
     "mpirun ends the job when a rank ends without MPI_Finalize"},
    {"library-versions",
     [](Facts& job) { job[5].libraries[1].version = "2.18.1"; },
     {5},
     "NCCL differs: rank 5: 2.18.1; ranks 0-4,6-7: 2.28.3"},
    {"library-versions",
     [](Facts& job) {
       job[5].libraries[1] = {"NCCL", "", ""};
     },
     {5},
     "not found"},
    {"library-paths",
     [](Facts& job) { job[2].libraries[0].path = "/opt/libmpi.so"; },
     {2},
     "rank 2: /opt/libmpi.so"},
    {"nccl-settings",
     [](Facts& job) { job[3].variables["NCCL_ALGO"] = "Ring"; },
     {3},
     "NCCL_ALGO differs: rank 3: Ring; ranks 0-2,4-7: not set"},
    {"nccl-settings",
     [](Facts& job) { job[6].variables["NCCL_IB_DISABLE"] = "0"; },
     {6},
     "NCCL_IB_DISABLE differs"},
    {"no-shared-memory",
     [](Facts& job) {
       for (auto& facts : job)
         if (facts.node == 1) facts.why_no_shared_memory = "rank 2 cannot open the file";
     },
     {2, 3},
     "the ranks of host h1 share no memory: rank 2 cannot open the file"},
    {"settings",
     [](Facts& job) {
       job[4].wrong_settings =
           "the environment variable RANKMESH_CHECK must be 0 or 1, got 'maybe'";
     },
     {4},
     "RANKMESH_CHECK must be 0 or 1, got 'maybe'"},
    {"setting-names",
     [](Facts& job) {
       for (auto& facts : job) facts.variables["RANKMESH_DEADLNE"] = "3";
     },
     {0, 1, 2, 3, 4, 5, 6, 7},
     "RANKMESH_DEADLNE is not known; did you mean RANKMESH_DEADLINE?"},
    {"variables",
     [](Facts& job) { job[1].variables["LD_LIBRARY_PATH"] = "/opt/lib"; },
     {1},
     "LD_LIBRARY_PATH differs"},
    {"variables", [](Facts& job) { job[1].variables["OMP_NUM_THREADS"] = "1"; }, {1}, "rank 1: 1"},
    {"variables",
     [](Facts& job) { job[7].variables["OMPI_MCA_btl"] = "tcp,self"; },
     {7},
     "OMPI_MCA_btl"},
    {"variables", [](Facts& job) { job[7].variables["RANKMESH_TIMEOUT"] = ""; }, {7}, "rank 7: ''"},
    {"node-variables",
     [](Facts& job) { job[4].variables["UCX_NET_DEVICES"] = "mlx5_2:1"; },
     {4},
     "UCX_NET_DEVICES differs"},
    {"limits",
     [](Facts& job) { job[3].limits.descriptors = 1024; },
     {3},
     "the limit of the number of descriptors differs: rank 3: 1024; ranks 0-2,4-7: 65536"},
    {"locked-memory",
     [](Facts& job) {
       for (auto& facts : job) facts.limits.locked_memory = 65536;
     },
     {0, 1, 2, 3, 4, 5, 6, 7},
     "only 64 KiB of memory can be locked"},
    {"descriptors",
     [](Facts& job) {
       for (auto& facts : job) facts.limits.descriptors = 128;
     },
     {0, 1, 2, 3, 4, 5, 6, 7},
     "is allowed to have 128 descriptors, but this job needs about 256"},
    {"address-space",
     [](Facts& job) {
       for (auto& facts : job) facts.limits.address_space = std::int64_t{8} << 30;
     },
     {0, 1, 2, 3, 4, 5, 6, 7},
     "limited to 8 GiB"},
    {"shared-memory",
     [](Facts& job) { job[2].shared_memory_free = 1 << 20; },
     {2, 3},
     "/dev/shm of host h1 has 1 MiB free of 16 GiB, for 2 ranks"},
    {"shared-memory",
     [](Facts& job) { job[2].shared_memory_size = job[2].shared_memory_free = -1; },
     {2, 3},
     "host h1 has no /dev/shm"},
    {"ptrace-scope", [](Facts& job) { job[7].ptrace_scope = 3; }, {7}, "ptrace_scope"},
    {"oversubscription",
     [](Facts& job) {
       for (auto& facts : job) {
         facts.cores = {0};
         facts.variables["OMP_NUM_THREADS"] = "1";
       }
     },
     {0, 1},
     "2 ranks on host h0 share 1 core"},
    {"overlapping-bindings",
     [](Facts& job) {
       for (auto& facts : job) facts.variables["OMP_NUM_THREADS"] = "1";
       job[3].cores = {1, 2};
     },
     {2, 3},
     "rank 2: cores 0-1; rank 3: cores 1-2"},
    {"threads",
     [](Facts& job) {
       for (auto& facts : job) facts.variables["OMP_NUM_THREADS"] = "4,2";
     },
     {0, 1},
     "OMP_NUM_THREADS=4 on rank 0, which is allowed to use 2 cores"},
    {"threads",
     [](Facts& job) {
       for (auto& facts : job) facts.cores = {0, 1, 2};
     },
     {0, 1},
     "OMP_NUM_THREADS makes 4 threads on the 3 cores of host h0"},
    {"core-counts",
     [](Facts& job) {
       job[7].cores = {2, 3, 4, 5};
     },
     {7},
     "rank 7: 4 cores"},
    {"clock-offset",
     [](Facts& job) { job[4].clock->offset = -5; },
     {4, 5},
     "the clock of host h2 is 5.000 s behind that of host h0"},
    {"host-names",
     [](Facts& job) { job[6].unresolved_hosts = {"h3"}; },
     {6},
     "the host name h3 cannot be resolved"},
    {"latency",
     [](Facts& job) { job[2].link->latency = job[4].link->latency = 5e-4; },
     {2, 4, 6},
     "h1 to h2: 500.0 us; h2 to h3: 500.0 us (the median of all connections is 2.0 us); host h2 is "
     "an end of each of them"},
    {"bandwidth",
     [](Facts& job) { job[6].link->bandwidth = 1e9; },
     {0, 6},
     "h3 to h0: 1 GB/s (the median of all connections is 24 GB/s)"},
    {"shared-device",
     [](Facts& job) { job[3].devices[0].uuid = job[2].devices[0].uuid; },
     {2, 3},
     "ranks 2-3 use one device (H100 0000:01:00.0 of host h1)"},
    {"missing-devices",
     [](Facts& job) {
       job[5].devices.clear();
       job[5].has_device_nodes = false;
       job[5].why_no_devices = "no CUDA driver was found";
     },
     {5},
     "no device on rank 5, although other ranks have one: no CUDA driver was found"},
    {"device-kinds",
     [](Facts& job) { job[1].devices[0].name = "A100"; },
     {1},
     "rank 1: A100, 80 GiB"},
    {"device-kinds",
     [](Facts& job) { job[1].devices[0].memory /= 2; },
     {1},
     "rank 1: H100, 40 GiB"},
    {"device-ecc", [](Facts& job) { job[1].devices[0].has_ecc = false; }, {1}, "rank 1: off"},
    {"visible-devices",
     [](Facts& job) { job[4].variables.erase("CUDA_VISIBLE_DEVICES"); },
     {4},
     "rank 4: not set"},
    {"device-driver",
     [](Facts& job) {
       for (auto& facts : job) {
         facts.devices.clear();
         facts.why_no_devices = "no CUDA driver was found (libcuda.so.1)";
       }
     },
     {0, 1, 2, 3, 4, 5, 6, 7},
     "no CUDA driver was found"},
    {"nccl-interface",
     [](Facts& job) {
       for (auto& facts : job) facts.variables["NCCL_SOCKET_IFNAME"] = "ib";
     },
     {0, 1},
     "NCCL_SOCKET_IFNAME=ib chooses no network interface that is up of host h0, which has eth0, "
     "lo"},
    {"nccl-network",
     [](Facts& job) {
       for (auto& facts : job) facts.variables["NCCL_NET"] = "Libfabrik";
     },
     {0, 1},
     "NCCL_NET=Libfabrik is neither IB nor Socket"},
    {"nccl-network",
     [](Facts& job) {
       for (auto& facts : job) {
         facts.variables["NCCL_NET"] = "ib";
         if (facts.node == 3) facts.rdma_devices.clear();
       }
     },
     {6, 7},
     "host h3 has no RDMA device"},
    {"nccl-hca",
     [](Facts& job) {
       for (auto& facts : job) facts.variables["NCCL_IB_HCA"] = "=mlx5";
     },
     {0, 1},
     "NCCL_IB_HCA==mlx5 chooses no RDMA device of host h0, which has mlx5_0"},
    {"rdma-disabled",
     [](Facts& job) {
       for (auto& facts : job) facts.variables["NCCL_IB_DISABLE"] = "1";
     },
     {0, 1, 2, 3, 4, 5, 6, 7},
     "NCCL_IB_DISABLE"},
};

}  // namespace

TEST_CASE("nothing is found in a healthy job") {
  CHECK(ids_of(healthy_job()) == "");
  CHECK(ids_of(healthy_job(1, 4)) == "");
  CHECK(ids_of(healthy_job(1, 1)) == "");
  CHECK(ids_of({rankmesh::report::RankFacts{.shared_memory_free = std::int64_t{1} << 30}}) == "");
}

TEST_CASE("each mistake is found by its rule, with its ranks, and by no other rule") {
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.id);
    Facts job = healthy_job();
    mistake.make(job);
    CHECK(ids_of(job) == mistake.id);
    const auto findings = findings_of(job);
    REQUIRE(!findings.empty());
    CHECK(findings.front().ranks == mistake.ranks);
    CHECK_CONTAINS(findings.front().what, mistake.part);
    CHECK(!findings.front().why.empty());
    CHECK(!findings.front().fix.empty());
  }
}

TEST_CASE("ranks on one core, although the node has cores for all of them") {
  Facts job = healthy_job(2, 3);
  for (auto& facts : job) facts.variables["OMP_NUM_THREADS"] = "1";
  for (auto& facts : job) facts.cores = {facts.local_rank};
  CHECK(ids_of(job) == "");
  job[4].cores = job[3].cores = {0};
  job[5].cores = {4, 5};
  CHECK(ids_of(job) == "overlapping-bindings core-counts");
  CHECK(findings_of(job)[0].ranks == std::vector<std::int64_t>{3, 4});
}

TEST_CASE("groups of the fastest dimension that span nodes") {
  const auto plan = rankmesh::MeshSpec::parse("dp=4,tp=2").plan(8);
  Facts job = healthy_job();
  CHECK(ids_of(job, &plan) == "");
  for (auto& facts : job) {  // the ranks are dealt to the nodes one by one
    facts.node = static_cast<int>(facts.rank % 4);
    facts.local_rank = static_cast<int>(facts.rank / 4);
    facts.cores = {2 * facts.local_rank, 2 * facts.local_rank + 1};
    facts.host = "h" + std::to_string(facts.node);
    facts.clock.reset();
    facts.link.reset();
  }
  CHECK(ids_of(job, &plan) == "spanning-groups");
  CHECK(findings_of(job, &plan)[0].ranks == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_CONTAINS(findings_of(job, &plan)[0].what,
                 "4 of 4 groups of 'tp' span nodes, although 2 ranks fit");
  // A group that is larger than a node has to span nodes.
  const auto wide = rankmesh::MeshSpec::parse("tp=8").plan(8);
  CHECK(ids_of(job, &wide) == "");
}

TEST_CASE("a finding about a limit names the lowest value of the ranks that it is about") {
  Facts job = healthy_job();
  for (auto& facts : job) {
    facts.limits.locked_memory = 65536;
    facts.limits.address_space = std::int64_t{8} << 30;
  }
  job[0].limits.locked_memory = 4096;
  job[0].rdma_devices.clear();
  job[2].limits.address_space = std::int64_t{4} << 30;
  std::string text;
  for (const auto& finding : findings_of(job)) text += finding.what + "\n";
  CHECK_CONTAINS(text, "only 64 KiB of memory can be locked");
  CHECK_CONTAINS(text, "the address space is limited to 4 GiB");
}

TEST_CASE("long values are shown where they differ, and without control characters") {
  Facts job = healthy_job();
  std::string common;
  for (int i = 0; i < 60; ++i) common += "/opt/\xc3\xbc" + std::to_string(i) + ":";
  for (auto& facts : job) facts.variables["LD_LIBRARY_PATH"] = common + "/one";
  job[1].variables["LD_LIBRARY_PATH"] = common + "/other";
  job[2].variables["LD_LIBRARY_PATH"] = "a\nb\x1b[31m";
  const auto found = findings_of(job);
  REQUIRE(found.size() == 1);
  CHECK_CONTAINS(found[0].what, "rank 1: ...");
  CHECK_CONTAINS(found[0].what, "59:/other; ");
  CHECK_CONTAINS(found[0].what, "59:/one");
  CHECK_CONTAINS(found[0].what, "rank 2: a?b?[31m");
  for (auto& facts : job) facts.variables["LD_LIBRARY_PATH"] = "x";
  std::string umlauts = "y";
  for (int i = 0; i < 200; ++i) umlauts += "\xc3\xbc";
  job[1].variables["LD_LIBRARY_PATH"] = umlauts;
  CHECK_CONTAINS(findings_of(job).at(0).what, "rank 1: y\xc3\xbc");
  CHECK_CONTAINS(findings_of(job).at(0).what, "\xc3\xbc...; ranks 0,2-7: x");
}

TEST_CASE("of many values the usual one is shown too") {
  Facts job = healthy_job();
  for (auto& facts : job) facts.variables["LD_LIBRARY_PATH"] = "usual";
  for (std::size_t r = 0; r < 5; ++r)
    job[r].variables["LD_LIBRARY_PATH"] = "own" + std::to_string(r);
  const auto found = findings_of(job);
  REQUIRE(found.size() == 1);
  CHECK_CONTAINS(found[0].what, "ranks 5-7: usual; and 2 others");
}

TEST_CASE("a wrong clock of rank 0 is a finding about rank 0") {
  Facts job = healthy_job();
  for (auto& facts : job)
    if (facts.clock && facts.rank > 0) facts.clock->offset = -5;
  const auto found = findings_of(job);
  REQUIRE(found.size() == 1);
  CHECK(found[0].ranks == std::vector<std::int64_t>{0, 1});
  CHECK(found[0].what == "the clock of host h0 is 5.000 s ahead of that of host h2");
}

TEST_CASE("of two clocks that differ, rank 0's counts") {
  Facts job = healthy_job(2, 2);
  job[2].clock->offset = -5;
  const auto found = findings_of(job);
  REQUIRE(found.size() == 1);
  CHECK(found[0].what == "the clock of host h1 is 5.000 s behind that of host h0");
}

TEST_CASE("a value that is the same on all ranks has no control characters either") {
  Facts job = healthy_job();
  for (auto& facts : job) facts.variables["NCCL_SOCKET_IFNAME"] = "=no\x1b[31m";
  for (const auto& finding : findings_of(job))
    CHECK(finding.what.find('\x1b') == std::string::npos);
  CHECK(!findings_of(job).empty());
}

TEST_CASE("each rule has a mistake here") {
  for (const auto& rule : rankmesh::report::doctor_rules()) {
    CAPTURE(rule.id);
    const bool is_tried =
        rule.id == "spanning-groups" || std::ranges::any_of(mistakes, [&](const Mistake& mistake) {
          return mistake.id == rule.id;
        });
    CHECK(is_tried);
  }
}
