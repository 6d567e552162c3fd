// SPDX-License-Identifier: BSD-3-Clause
// The formats: Open MPI 4's mpirun(1), "Rankfiles"; PRRTE's rankfile mapper (Open MPI 5);
// "Using the Hydra Process Manager" of MPICH; srun(1), --distribution=arbitrary; intro_mpi(3) of
// Cray MPICH, MPICH_RANK_REORDER_METHOD.
#include "place/emit.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {
namespace {

// The rank in each slot, or -1.
std::vector<std::int64_t> ranks_of(const Machine& machine, std::span<const std::int64_t> slots) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(machine.slot_count()), -1);
  for (std::size_t r = 0; r < slots.size(); ++r) {
    const std::int64_t slot = slots[r];
    if (slot < 0 || slot >= machine.slot_count() || ranks[static_cast<std::size_t>(slot)] >= 0)
      throw UsageError{
          fmt::format(
              "rank {} cannot have slot {}: this slot does not exist, or another rank has it", r,
              slot),
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

std::string mesh_order(const Machine& /*machine*/, std::span<const std::int64_t> slots) {
  const std::vector<Rank> ranks(slots.begin(), slots.end());
  return fmt::format("rank_order = \"{}\"\n", RankSet::of(ranks).to_string());
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
                       "use the format mesh-order or MeshOptions::reorder, which change the order "
                       "of the mesh instead"};
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

struct LaunchFile {
  std::string_view name;
  std::string (*file)(const Machine& machine, std::span<const std::int64_t> slots);
  bool names_hosts;
  fmt::string_view usage;  // {0}: the path of the file, {1}: the number of ranks
};

// In the order of EmitFormat.
constexpr std::array<LaunchFile, 9> launch_files{{
    {"openmpi", rank_file, true, "mpirun -n {1} --rankfile {0} PROGRAM"},
    {"openmpi5", rank_file, true, "mpirun -n {1} --map-by rankfile:FILE={0} PROGRAM"},
    {"openmpi-seq", hosts_of_ranks, true, "mpirun -n {1} --hostfile {0} --map-by seq PROGRAM"},
    {"mpich", hosts_of_ranks, true, "mpiexec -n {1} -f {0} PROGRAM"},
    {"slurm", hosts_of_ranks, true,
     "SLURM_HOSTFILE={0} srun -n {1} --distribution=arbitrary PROGRAM"},
    {"cray", rank_order, false,
     "copy {0} to ./MPICH_RANK_ORDER and set MPICH_RANK_REORDER_METHOD=3"},
    {"torchrun", torchrun_commands, true,
     "on each host, run the host's command in {0}, followed by PROGRAM"},
    {"cuda-devices", cuda_devices, false, "start each rank with its line of {0}"},
    {"mesh-order", mesh_order, false,
     "put the line of {0} into the mesh file, in place of its rank_order if it has one"},
}};

}  // namespace

std::optional<EmitFormat> emit_format(std::string_view name) {
  const auto* found = std::ranges::find(launch_files, name, &LaunchFile::name);
  if (found == launch_files.end()) return std::nullopt;
  return static_cast<EmitFormat>(found - launch_files.begin());
}

std::vector<std::string> emit_format_names() {
  std::vector<std::string> names;
  for (const LaunchFile& format : launch_files) names.emplace_back(format.name);
  return names;
}

std::string emit(EmitFormat format, const Machine& machine, std::span<const std::int64_t> slots) {
  (void)ranks_of(machine, slots);  // checks the slots
  return launch_files.at(static_cast<std::size_t>(format)).file(machine, slots);
}

std::vector<std::int64_t> slots_in_mesh_order(const MeshSpec& spec,
                                              std::span<const FamilyTraffic> traffic,
                                              std::span<const std::int64_t> slots) {
  constexpr const char* hint =
      "use a format for the launcher, such as openmpi-seq, which changes no mesh file";
  const MeshSpec::Grid& grid = spec.grids().front();
  if (!grid.name.empty())
    throw UsageError{"a mesh file with grids cannot have the line rank_order", hint};
  if (grid.rank_offset != 0)
    throw UsageError{"a mesh file with rank_offset cannot have the line rank_order", hint};
  for (const MeshSpec::Lists& lists : spec.lists())
    if (std::ranges::any_of(
            traffic, [&](const FamilyTraffic& t) { return t.name == lists.name && t.bytes > 0; }))
      throw UsageError{fmt::format("the line rank_order does not move the groups of '{}', which "
                                   "the mesh file lists by their ranks",
                                   lists.name),
                       hint};
  if (!grid.ranks) return {slots.begin(), slots.end()};
  std::vector<std::int64_t> result;
  for (const Rank rank : *grid.ranks) result.push_back(slots[rank.to_size()]);
  return result;
}

bool names_hosts(EmitFormat format) {
  return launch_files.at(static_cast<std::size_t>(format)).names_hosts;
}

std::string emit_usage(EmitFormat format, std::string_view path, std::int64_t ranks) {
  return fmt::format(fmt::runtime(launch_files.at(static_cast<std::size_t>(format)).usage), path,
                     ranks);
}

}  // namespace rankmesh
