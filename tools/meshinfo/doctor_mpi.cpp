// SPDX-License-Identifier: BSD-3-Clause
// doctor in a job: gathers the facts of all ranks on rank 0.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "doctor.hpp"
#include "launcher.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/launcher.hpp"
#include "rankmesh/device/libraries.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/mpi/node.hpp"

namespace meshinfo {
namespace {

using rankmesh::mpi::check;
using rankmesh::report::RankFacts;

}  // namespace

void add_libraries_and_devices(RankFacts& facts) {
  for (const rankmesh::LibraryInfo& library : rankmesh::libraries())
    facts.libraries.push_back({library.name, library.version, library.path});
  const rankmesh::VisibleDevices visible = rankmesh::visible_devices();
  facts.why_no_devices = visible.why_none;
  for (const rankmesh::DeviceInfo& device : visible.devices)
    facts.devices.push_back(
        {device.uuid, device.name, device.bus_id, device.memory, device.has_ecc});
  if (!facts.devices.empty())
    facts.device = facts.local_rank % static_cast<int>(facts.devices.size());
}

GatheredFacts Job::gather(double timeout) {
  GatheredFacts result;
  if (!is_in_job()) {
    result.ranks.push_back(local_facts());
    add_libraries_and_devices(result.ranks.front());
    return result;
  }
  RankFacts facts = local_facts();  // before MPI_Init, which may change the environment
  const auto number = rankmesh::launcher_rank();
  StepWatch watch{
      timeout, fmt::format("{} (host {})", number ? fmt::format("rank {}", *number) : "a process",
                           facts.host)};
  watch.begin("MPI_Init, which waits for the other ranks");
  start();
  result.in_job = true;
  int size = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  facts.rank = rank;
  facts.world_size = size;
  facts.mpi_library = rankmesh::mpi::library_text();
  watch.begin("finding the ranks of each node, a collective of all ranks");
  const rankmesh::mpi::CommunicatorView world{MPI_COMM_WORLD};
  const rankmesh::Placement placement = rankmesh::mpi::discover_nodes(world);
  facts.node = placement.node(rankmesh::Rank{rank});
  facts.local_rank = placement.local_rank(rankmesh::Rank{rank});
  add_libraries_and_devices(facts);
  measure_nodes(facts, watch);
  watch.begin("gathering the facts on rank 0");
  for (const std::string& text : gather_texts(rankmesh::report::to_json(facts)))
    result.ranks.push_back(rankmesh::report::rank_facts_from_json(text));
  return result;
}

}  // namespace meshinfo
