// SPDX-License-Identifier: BSD-3-Clause
// doctor in a job: gathers the facts of all ranks on rank 0.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "doctor.hpp"
#include "doctor_nodes.hpp"
#include "launcher.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/launcher.hpp"
#include "rankmesh/helpers/libraries.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/mpi/node.hpp"

namespace meshinfo {
namespace {

using rankmesh::mpi::check;
using rankmesh::report::RankFacts;

// Gathers one text per rank on rank 0. The counts of MPI are ints. Therefore the texts are gathered
// from blocks of ranks whose texts together have less than 2^31 bytes.
std::vector<std::string> gather_texts(MPI_Comm comm, const std::string& own) {
  constexpr std::size_t most_bytes = std::size_t{512} << 10;
  constexpr int block = 4000;
  if (own.size() > most_bytes)
    throw rankmesh::UsageError{fmt::format("the facts of a rank have {} bytes", own.size()),
                               "unset variables that are very long, for example LD_LIBRARY_PATH"};
  int size = 0, rank = 0;
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  const int bytes = static_cast<int>(own.size());
  std::vector<int> sizes(rank == 0 ? static_cast<std::size_t>(size) : 0);
  check(MPI_Gather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, comm), "MPI_Gather");
  std::vector<std::string> texts;
  for (int first = 0; first < size; first += block) {
    const bool sends = rank >= first && rank < first + block;
    std::vector<int> counts(sizes.size()), offsets(sizes.size());
    int total = 0;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      const int number = static_cast<int>(r);
      counts[r] = number >= first && number < first + block ? sizes[r] : 0;
      offsets[r] = total;
      total += counts[r];
    }
    std::string all(static_cast<std::size_t>(total), '\0');
    check(MPI_Gatherv(own.data(), sends ? bytes : 0, MPI_CHAR, all.data(), counts.data(),
                      offsets.data(), MPI_CHAR, 0, comm),
          "MPI_Gatherv");
    for (std::size_t r = static_cast<std::size_t>(first);
         r < std::min(sizes.size(), static_cast<std::size_t>(first + block)); ++r)
      texts.push_back(
          all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(counts[r])));
  }
  return texts;
}

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
  for (const std::string& text : gather_texts(MPI_COMM_WORLD, rankmesh::report::to_json(facts)))
    result.ranks.push_back(rankmesh::report::rank_facts_from_json(text));
  return result;
}

}  // namespace meshinfo
