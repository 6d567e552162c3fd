// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about environment variables that differ between ranks.
#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "detail/doctor.hpp"

namespace rankmesh::report::detail {
namespace {

enum class Kind : std::uint8_t {
  own,       // set by the launcher, or different on each rank for good reasons
  settings,  // NCCL needs the same value on all ranks
  node,      // names hardware of the node, and may differ between nodes
  job,       // the same on all ranks
};

// Variables that a launcher sets by itself. Of Open MPI's own variables, only OMPI_MCA_... can be
// set by a user; the variables of its run-time environment (orte, prte, ess, pmix) differ between
// ranks.
constexpr std::string_view launcher_prefixes[] = {"OMPI_MCA_orte_",
                                                  "OMPI_MCA_ess",
                                                  "OMPI_MCA_pmix",
                                                  "OMPI_MCA_prte_",
                                                  "OMPI_MCA_shmem_RUN",
                                                  "OMPI_MCA_initial",
                                                  "OMPI_MCA_mpi_oversubs",
                                                  "PMI",
                                                  "SLURM_",
                                                  "MPICH_INTERFACE_HOSTNAME",
                                                  "MPIR_CVAR_CH3_INTERFACE_HOST",
                                                  "RANKMESH_MPIRUN",
                                                  "CUDA_VISIBLE_DEVICES"};

// Job scripts often choose these for each local rank.
constexpr std::string_view node_variables[] = {"NCCL_SOCKET_IFNAME",
                                               "NCCL_IB_HCA",
                                               "UCX_NET_DEVICES",
                                               "OMPI_MCA_btl_tcp_if_include",
                                               "OMPI_MCA_btl_openib_if_include",
                                               "FI_TCP_IFACE",
                                               "FI_SOCKETS_IFACE",
                                               "MPIR_CVAR_OFI_NIC",
                                               "NCCL_TOPO_FILE"};

constexpr std::string_view nccl_settings[] = {"NCCL_ALGO",          "NCCL_PROTO",
                                              "NCCL_NET",           "NCCL_IB_DISABLE",
                                              "NCCL_P2P_DISABLE",   "NCCL_SHM_DISABLE",
                                              "NCCL_BUFFSIZE",      "NCCL_COLLNET_ENABLE",
                                              "NCCL_NVLS_ENABLE",   "NCCL_MIN_NCHANNELS",
                                              "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS",
                                              "NCCL_CROSS_NIC",     "NCCL_LAUNCH_ORDER_IMPLICIT",
                                              "NCCL_NET_PLUGIN",    "NCCL_CUMEM_ENABLE"};

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

Kind kind_of(std::string_view name) {
  const bool is_of_launcher =
      std::ranges::any_of(launcher_prefixes,
                          [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
      (name.starts_with("OMPI_") && !name.starts_with("OMPI_MCA_"));
  if (is_of_launcher) return Kind::own;
  if (contains(nccl_settings, name)) return Kind::settings;
  return contains(node_variables, name) ? Kind::node : Kind::job;
}

std::set<std::string> names_of(const Examination& job, Kind kind) {
  std::set<std::string> names;
  for (const RankFacts& facts : job.ranks)
    for (const auto& [name, value] : facts.variables)
      if (kind_of(name) == kind) names.insert(name);
  return names;
}

std::string value_of(const RankFacts& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  if (found == facts.variables.end()) return "not set";
  return found->second.empty() ? "''" : found->second;
}

Findings differing(const Rule& rule, const Examination& job, Kind kind, const char* why,
                   const char* fix) {
  Findings findings;
  for (const std::string& name : names_of(job, kind)) {
    const auto values =
        variants(job, [&](const RankFacts& facts) { return value_of(facts, name); });
    if (values.size() > 1)
      findings.push_back(finding(rule, outliers(values),
                                 fmt::format("{} differs: {}", name, to_string(values)), why, fix));
  }
  return findings;
}

}  // namespace

Findings check_nccl_settings(const Rule& rule, const Examination& job) {
  return differing(rule, job, Kind::settings,
                   "NCCL decides on each rank by itself how it sends; ranks that decide "
                   "differently wait for each other without end, or NCCL refuses to start",
                   "set the variable to the same value on all ranks, or on none: in the job "
                   "script, with mpirun -x NAME, or in /etc/nccl.conf of all nodes");
}

Findings check_variables(const Rule& rule, const Examination& job) {
  return differing(rule, job, Kind::job,
                   "libraries of different ranks then behave differently; mpirun does not pass on "
                   "all variables to other nodes",
                   "set it in the job script and pass it on (Open MPI: mpirun -x NAME; MPICH: "
                   "-genvlist NAME; Slurm: srun --export=ALL), and not in the shell start-up "
                   "files of single nodes");
}

Findings check_node_variables(const Rule& rule, const Examination& job) {
  return differing(rule, job, Kind::node,
                   "that is right if the hardware of the nodes has different names, or if each "
                   "rank has a network card of its own",
                   "if the nodes are equal, set the same value on all ranks");
}

}  // namespace rankmesh::report::detail
