// SPDX-License-Identifier: BSD-3-Clause
// Reads descriptions of machines: host files, networks from Slurm and Topograph, and topologies of
// nodes from nvidia-smi, hwloc and NCCL. Also reads the topology of the node on which this process
// runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/detail/parts.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh {

/// Figures of a machine that a user gives directly, instead of a description.
struct MachineNumbers {
  std::optional<std::int64_t> ranks_per_node;  ///< The number of slots of each node.
  /// The size of an NVLink domain in ranks. It may be larger or smaller than a node.
  std::optional<std::int64_t> ranks_per_domain;
  std::optional<std::int64_t> nodes_per_leaf;  ///< The number of nodes below each leaf switch.
  /// The number of ranks. The machine gets this number of slots.
  std::optional<std::int64_t> world_size;
};

/// The format of a description of machines.
enum class MachineFormat : std::uint8_t {
  automatic,   ///< recognised from the content
  hostfile,    ///< hosts with their slots, for Open MPI or MPICH
  slurm_job,   ///< SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE, as `env` prints them
  slurm_conf,  ///< Slurm's topology.conf, trees or blocks
  slurm_yaml,  ///< Slurm's topology.yaml, trees or blocks
  topograph,   ///< the JSON of Topograph's engine `graph`
  nvidia_smi,  ///< the output of `nvidia-smi topo -m`
  hwloc,       ///< the XML of hwloc
  nccl,        ///< the XML of NCCL (NCCL_TOPO_FILE)
};

/// Returns the format with this name, for example `slurm-conf`, or nothing if there is none.
[[nodiscard]] std::optional<MachineFormat> machine_format(std::string_view name);
/// Returns the names of all formats.
[[nodiscard]] std::vector<std::string> machine_format_names();

/// Combines descriptions into a machine. There may be at most one list of hosts (hostfile,
/// slurm_job), one network between hosts (slurm_conf, slurm_yaml, topograph), and one topology of a
/// node (nvidia_smi, hwloc, nccl), which applies to all nodes. MachineNumbers take the place of
/// missing descriptions.
class MachineReader {
 public:
  /// Reads one description. The function reads nothing but the text; it does not resolve
  /// host names.
  /// @param origin  the name of the text in errors, usually its path.
  /// @throws SpecError with the line and the reason if the text is invalid, or if a description of
  /// the same part has been read before.
  void read(std::string_view text, std::string_view origin,
            MachineFormat format = MachineFormat::automatic);

  /// Reads the inside of the node that this process runs on, through libhwloc: its sockets, GPUs
  /// and network interfaces. Like a file of hwloc, it applies to all nodes of the machine. The call
  /// is local; on nodes with many devices it takes up to a second.
  /// @throws UsageError if libhwloc fails, or if rankmesh was built without it (the build option
  /// `hwloc`); SpecError if the inside of a node has been described before.
  void read_this_node();

  /// Uses the hosts of a running job. Replaces a list of hosts.
  /// @param node_of_rank  the node of each rank.
  /// @param hosts  the name of each node.
  /// @throws SpecError if a description of the hosts has been read before.
  void set_job(std::span<const std::int32_t> node_of_rank, std::vector<std::string> hosts);

  /// Returns the machine.
  ///
  /// - The machine has the hosts of the list of hosts. Without a list, it has the hosts of the
  ///   network. Without a network, there are as many hosts as `world_size` needs.
  /// - A host has the number of slots that the list of hosts states. If the list does not state it,
  ///   the number is `ranks_per_node`; if that is not set, the number of GPUs of a node; if the
  ///   node is not described, 1.
  /// - A network may describe more hosts than the job has.
  /// @throws SpecError if a number is less than 1, if the descriptions contradict each other or the
  /// numbers, if a host is not in the network, or if the machine has fewer slots than `world_size`.
  [[nodiscard]] Machine machine(const MachineNumbers& numbers = {}) const;

 private:
  [[nodiscard]] detail::Nodes nodes(const MachineNumbers& numbers) const;
  [[nodiscard]] Machine by_numbers(const MachineNumbers& numbers) const;
  [[nodiscard]] Machine by_nodes(const detail::Nodes& nodes, const MachineNumbers& numbers) const;
  [[nodiscard]] std::vector<SlotDevice> devices() const;
  void add_inner_levels(const detail::Nodes& nodes, std::vector<MachineLevel>& levels) const;

  std::optional<detail::Hosts> hosts_;
  std::optional<detail::Network> network_;
  std::optional<detail::NodeShape> shape_;
  std::optional<detail::Nodes> job_;
  std::string network_origin_;
};

}  // namespace rankmesh
