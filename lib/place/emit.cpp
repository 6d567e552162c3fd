// SPDX-License-Identifier: BSD-3-Clause
// The formats: Open MPI 4's mpirun(1), "Rankfiles"; PRRTE's rankfile mapper (Open MPI 5);
// "Using the Hydra Process Manager" of MPICH; srun(1), --distribution=arbitrary; intro_mpi(3) of
// Cray MPICH, MPICH_RANK_REORDER_METHOD.
#include "rankmesh/place/emit.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {
namespace {

constexpr std::array<std::pair<std::string_view, EmitFormat>, 9> format_names{{
    {"openmpi", EmitFormat::openmpi},
    {"openmpi5", EmitFormat::openmpi5},
    {"openmpi-seq", EmitFormat::openmpi_seq},
    {"mpich", EmitFormat::mpich},
    {"slurm", EmitFormat::slurm},
    {"cray", EmitFormat::cray},
    {"torchrun", EmitFormat::torchrun},
    {"cuda-devices", EmitFormat::cuda_devices},
    {"mesh-order", EmitFormat::mesh_order},
}};

// The rank in each slot, or -1.
std::vector<std::int64_t> ranks_of(const Machine& machine, std::span<const std::int64_t> slots) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(machine.slot_count()), -1);
  for (std::size_t r = 0; r < slots.size(); ++r) {
    const std::int64_t slot = slots[r];
    if (slot < 0 || slot >= machine.slot_count() || ranks[static_cast<std::size_t>(slot)] >= 0)
      throw UsageError{
          fmt::format("rank {} cannot have slot {}: it does not exist or is taken", r, slot),
          "give each rank a slot of its own"};
    ranks[static_cast<std::size_t>(slot)] = static_cast<std::int64_t>(r);
  }
  return ranks;
}

// The number of each slot on its node.
std::vector<std::int64_t> local_slots(const Machine& machine) {
  std::vector<std::int64_t> count(
      static_cast<std::size_t>(machine.unit_count(machine.node_level())));
  std::vector<std::int64_t> result;
  for (std::int64_t s = 0; s < machine.slot_count(); ++s)
    result.push_back(count[static_cast<std::size_t>(machine.unit(machine.node_level(), s))]++);
  return result;
}

std::string rank_file(const Machine& machine, std::span<const std::int64_t> slots) {
  const std::vector<std::int64_t> local = local_slots(machine);
  std::string text;
  for (std::size_t r = 0; r < slots.size(); ++r)
    text += fmt::format("rank {}={} slot={}\n", r, machine.host(slots[r]),
                        local[static_cast<std::size_t>(slots[r])]);
  return text;
}

std::string hosts_of_ranks(const Machine& machine, std::span<const std::int64_t> slots) {
  std::string text;
  for (const std::int64_t slot : slots) text += machine.host(slot) + "\n";
  return text;
}

// Cray's file lists the ranks in the order of the slots.
std::string rank_order(const Machine& machine, std::span<const std::int64_t> slots) {
  std::vector<std::int64_t> present;
  for (const std::int64_t rank : ranks_of(machine, slots))
    if (rank >= 0) present.push_back(rank);
  return fmt::format("{}\n", fmt::join(present, ","));
}

std::string cuda_devices(const Machine& machine, std::span<const std::int64_t> slots) {
  if (machine.device_count() == 0)
    throw UsageError{"the machine does not say which GPUs its nodes have",
                     "describe a node: --machine with nvidia-smi topo -m, hwloc or NCCL"};
  std::string text;
  for (std::size_t r = 0; r < slots.size(); ++r)
    text += fmt::format("{} CUDA_VISIBLE_DEVICES={}\n", r, machine.device(slots[r]).device);
  return text;
}

// The ranks of a node, and their slots in the order of the ranks.
struct NodeRanks {
  std::vector<std::int64_t> ranks, slots;
};

// torchrun numbers the ranks node by node, so the hosts are sorted by their first ranks.
std::vector<NodeRanks> nodes_in_order(const Machine& machine, std::span<const std::int64_t> slots) {
  std::vector<NodeRanks> nodes(static_cast<std::size_t>(machine.unit_count(machine.node_level())));
  for (std::size_t r = 0; r < slots.size(); ++r) {
    NodeRanks& node = nodes[static_cast<std::size_t>(machine.unit(machine.node_level(), slots[r]))];
    if (!node.ranks.empty() && node.ranks.back() + 1 != static_cast<std::int64_t>(r))
      throw UsageError{fmt::format("torchrun numbers the ranks of a host consecutively, but {} has "
                                   "the ranks {} and {} and none between them",
                                   machine.host(slots[r]), node.ranks.back(), r),
                       "use the format mesh-order or MeshOptions::reorder, which move the mesh"};
    node.ranks.push_back(static_cast<std::int64_t>(r));
    node.slots.push_back(slots[r]);
  }
  std::erase_if(nodes, [](const NodeRanks& node) { return node.ranks.empty(); });
  std::ranges::sort(nodes, {}, [](const NodeRanks& node) { return node.ranks.front(); });
  return nodes;
}

std::string torchrun_commands(const Machine& machine, std::span<const std::int64_t> slots) {
  const std::vector<std::int64_t> local = local_slots(machine);
  const std::vector<NodeRanks> nodes = nodes_in_order(machine, slots);
  std::string text;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    std::vector<std::int64_t> devices;
    for (const std::int64_t slot : nodes[n].slots) {
      const std::int64_t device = machine.device(slot).device;
      devices.push_back(device >= 0 ? device : local[static_cast<std::size_t>(slot)]);
    }
    text += fmt::format(
        "{}: CUDA_VISIBLE_DEVICES={} torchrun --nnodes={} --node-rank={} --nproc-per-node={} "
        "--master-addr={} --master-port=29500\n",
        machine.host(nodes[n].slots.front()), fmt::join(devices, ","), nodes.size(), n,
        nodes[n].ranks.size(), machine.host(nodes.front().slots.front()));
  }
  return text;
}

}  // namespace

std::optional<EmitFormat> emit_format(std::string_view name) {
  const auto* found =
      std::ranges::find(format_names, name, [](const auto& entry) { return entry.first; });
  return found == format_names.end() ? std::nullopt : std::optional{found->second};
}

std::vector<std::string> emit_format_names() {
  std::vector<std::string> names;
  for (const auto& entry : format_names) names.emplace_back(entry.first);
  return names;
}

std::string emit(EmitFormat format, const Machine& machine, std::span<const std::int64_t> slots) {
  (void)ranks_of(machine, slots);  // checks the slots
  switch (format) {
    case EmitFormat::openmpi:
    case EmitFormat::openmpi5:
      return rank_file(machine, slots);
    case EmitFormat::openmpi_seq:
    case EmitFormat::mpich:
    case EmitFormat::slurm:
      return hosts_of_ranks(machine, slots);
    case EmitFormat::cray:
      return rank_order(machine, slots);
    case EmitFormat::torchrun:
      return torchrun_commands(machine, slots);
    case EmitFormat::cuda_devices:
      return cuda_devices(machine, slots);
    case EmitFormat::mesh_order: {
      const std::vector<Rank> ranks(slots.begin(), slots.end());
      return fmt::format("rank_order = \"{}\"\n", RankSet::of(ranks).to_string());
    }
  }
  return {};
}

std::string emit_usage(EmitFormat format, std::string_view path, std::int64_t ranks) {
  switch (format) {
    case EmitFormat::openmpi:
      return fmt::format("mpirun -n {} --rankfile {} PROGRAM", ranks, path);
    case EmitFormat::openmpi5:
      return fmt::format("mpirun -n {} --map-by rankfile:FILE={} PROGRAM", ranks, path);
    case EmitFormat::openmpi_seq:
      return fmt::format("mpirun -n {} --hostfile {} --map-by seq PROGRAM", ranks, path);
    case EmitFormat::mpich:
      return fmt::format("mpiexec -n {} -f {} PROGRAM", ranks, path);
    case EmitFormat::slurm:
      return fmt::format("SLURM_HOSTFILE={} srun -n {} --distribution=arbitrary PROGRAM", path,
                         ranks);
    case EmitFormat::cray:
      return fmt::format("copy {} to ./MPICH_RANK_ORDER and set MPICH_RANK_REORDER_METHOD=3", path);
    case EmitFormat::torchrun:
      return fmt::format("on each host, run its command of {} with PROGRAM behind it", path);
    case EmitFormat::cuda_devices:
      return fmt::format("start each rank with its line of {}", path);
    case EmitFormat::mesh_order:
      return fmt::format("add the line of {} to the mesh file", path);
  }
  return {};
}

}  // namespace rankmesh
