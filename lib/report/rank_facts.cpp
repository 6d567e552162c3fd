// SPDX-License-Identifier: BSD-3-Clause
#include "report/rank_facts.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "rankmesh/base/error.hpp"

namespace rankmesh::report {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LibraryFacts, name, version, path)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeviceFacts, uuid, name, bus_id, memory, has_ecc)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LimitFacts, locked_memory, descriptors,
                                                address_space)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ClockFacts, offset, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LinkFacts, to, latency, bandwidth)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RankFacts, rank, world_size, node, local_rank, host,
                                                mpi_library, libraries, variables, limits,
                                                shared_memory_size, shared_memory_free,
                                                why_no_shared_memory, wrong_settings, ptrace_scope,
                                                cores, unresolved_hosts, interfaces, rdma_devices,
                                                has_net_plugin, has_device_nodes, why_no_devices,
                                                devices, device)

// Texts of the system need not be UTF-8; bytes that are not are replaced.
std::string to_json(const RankFacts& facts) {
  nlohmann::json json = facts;
  if (facts.clock) json["clock"] = *facts.clock;
  if (facts.link) json["link"] = *facts.link;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankFacts rank_facts_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    auto facts = json.get<RankFacts>();
    if (const auto clock = json.find("clock"); clock != json.end())
      facts.clock = clock->get<ClockFacts>();
    if (const auto link = json.find("link"); link != json.end())
      facts.link = link->get<LinkFacts>();
    return facts;
  } catch (const nlohmann::json::exception& error) {
    throw DataError{std::string{"the facts of a rank cannot be read: "} + error.what(),
                    "start the same meshinfo on all ranks"};
  }
}

bool is_examined_variable(std::string_view name) {
  constexpr std::string_view prefixes[] = {"NCCL_", "CUDA_", "OMPI_", "MPICH_", "MPIR_CVAR_",
                                           "UCX_",  "FI_",   "PSM2_", "I_MPI_", "RANKMESH_"};
  constexpr std::string_view names[] = {"RANKMESH",     "OMP_NUM_THREADS", "LD_LIBRARY_PATH",
                                        "LD_PRELOAD",   "PMI_RANK",        "PMI_SIZE",
                                        "PMIX_RANK",    "PMIX_SIZE",       "SLURM_STEP_NUM_TASKS",
                                        "SLURM_PROCID", "SLURM_STEPID"};
  return std::ranges::find(names, name) != std::end(names) ||
         std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace rankmesh::report
