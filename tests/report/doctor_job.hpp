// SPDX-License-Identifier: BSD-3-Clause
// The facts of a healthy job, which the tests of doctor break in one place each.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "report/doctor.hpp"

namespace rankmesh_test {

using Facts = std::vector<rankmesh::report::RankFacts>;

// A job of so many nodes with so many ranks each. Each rank is bound to two cores, and has a
// device.
inline Facts healthy_job(int nodes = 4, int per_node = 2) {
  Facts job;
  for (int r = 0; r < nodes * per_node; ++r) {
    rankmesh::report::RankFacts facts;
    const int local = r % per_node;
    facts.rank = r;
    facts.world_size = nodes * per_node;
    facts.node = r / per_node;
    facts.local_rank = local;
    facts.host = "h" + std::to_string(facts.node);
    facts.mpi_library = "Open MPI v5.0.3, package: x";
    facts.libraries = {{"MPI", "Open MPI v5.0.3", "/usr/lib/libmpi.so.40"},
                       {"NCCL", "2.28.3", "/usr/lib/libnccl.so.2"}};
    facts.variables = {{"OMPI_COMM_WORLD_SIZE", std::to_string(nodes * per_node)},
                       {"OMPI_COMM_WORLD_RANK", std::to_string(r)},
                       {"PMIX_RANK", std::to_string(r)},
                       {"CUDA_VISIBLE_DEVICES", std::to_string(local)},
                       {"OMP_NUM_THREADS", "2"}};
    facts.limits = {-1, 65536, -1};
    facts.shared_memory_size = facts.shared_memory_free = std::int64_t{16} << 30;
    facts.ptrace_scope = 1;
    facts.cores = {2 * local, 2 * local + 1};
    facts.interfaces = {"eth0", "lo"};
    facts.rdma_devices = {"mlx5_0"};
    facts.has_device_nodes = true;
    facts.devices = {
        {"uuid" + std::to_string(r), "H100", "0000:01:00.0", std::int64_t{80} << 30, true}};
    facts.device = 0;
    if (local == 0) facts.clock = {{1e-5 * r, 2e-5}};
    if (local == 0 && nodes > 1) facts.link = {{(r + per_node) % (nodes * per_node), 2e-6, 24e9}};
    job.push_back(std::move(facts));
  }
  return job;
}

inline std::vector<rankmesh::report::Finding> findings_of(
    const Facts& job, const rankmesh::MeshPlan* plan = nullptr) {
  return rankmesh::report::examine({job, plan});
}

// The ids of the findings, each once, separated by blanks.
inline std::string ids_of(const Facts& job, const rankmesh::MeshPlan* plan = nullptr) {
  std::string ids;
  for (const auto& found : findings_of(job, plan))
    if ((" " + ids + " ").find(" " + found.id + " ") == std::string::npos)
      ids += (ids.empty() ? "" : " ") + found.id;
  return ids;
}

}  // namespace rankmesh_test
