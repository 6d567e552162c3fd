// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include "nccl_log.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "report/nccl_choice.hpp"

namespace meshinfo {
namespace {

using rankmesh::mpi::check;
using rankmesh::report::NcclChoice;

constexpr std::size_t bytes_per_rank = 1024;

// Keeps the lines of a log from which the choice is read, each kind of connection once.
std::string lines_of(const NcclChoice& choice) {
  std::string text;
  const auto add = [&](const std::string& line) { text += "NCCL INFO " + line + "\n"; };
  if (!choice.network.empty()) add("Using network " + choice.network);
  if (!choice.bootstrap.empty()) add("Bootstrap: Using " + choice.bootstrap + ":");
  for (const std::string& kind : choice.connections) add("Channel via " + kind);
  if (choice.has_nvls)
    add(std::string{"NVLS multicast support is "} + (*choice.has_nvls ? "" : "not ") + "available");
  if (choice.has_mnnvl) add(*choice.has_mnnvl ? "MNNVL 1" : "MNNVL 0");
  std::string devices;
  for (const std::string& device : choice.over) devices += " [0]" + device;
  if (!devices.empty()) add("NET/" + choice.network + " : Using" + devices);
  text.resize(bytes_per_rank, '\0');
  return text;
}

}  // namespace

void gather_nccl_choices(OpenMesh& open, const NcclLog& log) {
  if (open.mesh == nullptr || !open.mesh->device()) return;
  const std::string mine = lines_of(rankmesh::report::read_nccl_log(log.text()));
  const auto ranks = static_cast<std::size_t>(open.mesh->size());
  std::string all(open.mesh->rank() == rankmesh::Rank{0} ? ranks * bytes_per_rank : 0, '\0');
  check(MPI_Gather(mine.data(), bytes_per_rank, MPI_CHAR, all.data(), bytes_per_rank, MPI_CHAR, 0,
                   MPI_COMM_WORLD),
        "MPI_Gather");
  if (all.empty()) return;
  std::vector<NcclChoice> choices;
  bool is_known = false;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::string text = all.substr(r * bytes_per_rank, bytes_per_rank);
    choices.push_back(rankmesh::report::read_nccl_log(text.c_str()));
    is_known = is_known || !(choices.back() == NcclChoice{});
  }
  if (is_known) open.facts->nccl = std::move(choices);
}

}  // namespace meshinfo
