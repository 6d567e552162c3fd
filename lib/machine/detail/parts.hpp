// SPDX-License-Identifier: BSD-3-Clause
// What one input says about the machines of a job: the hosts with their slots, the network between
// hosts, or the inside of a node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/machine/machine.hpp"

namespace rankmesh::detail {

/// The hosts in the order in which the launcher fills them.
struct Hosts {
  struct Host {
    std::string name;
    std::int64_t slots = 0;  ///< 0 if the input does not say
    std::int64_t line = 0;
  };
  std::vector<Host> hosts;
};

/// The switches or blocks to which hosts belong. Each host has one parent at most, and each switch
/// has one parent at most.
struct Network {
  static constexpr std::int32_t none = -1;
  struct Switch {
    std::string name;
    LevelKind kind = LevelKind::network;
    std::int32_t parent = none;  ///< index into `switches`
    std::int64_t line = 0;
  };
  struct Host {
    std::string name;
    std::int32_t parent = none;
    std::int64_t line = 0;
  };
  std::vector<Switch> switches{};
  std::vector<Host> hosts{};  ///< in the order of the text
};

/// The GPUs of one node. Without GPUs, only the number of sockets is known.
struct NodeShape {
  struct Gpu {
    std::int32_t device = 0;
    std::int32_t domain = 0;  ///< GPUs with the same number are connected by NVLink
    std::int32_t socket = 0;
    std::string nic{};  ///< empty if the input does not say
  };
  std::vector<Gpu> gpus{};   ///< in the order of their numbers
  bool has_sockets = false;  ///< whether the sockets of the GPUs are known
  std::int32_t sockets = 1;
};

/// The nodes of a machine, and the node of each slot.
struct Nodes {
  std::vector<std::string> names;
  std::vector<std::int32_t> node_of_slot;
  std::vector<std::int64_t> sizes;        // the slots of each node
  std::vector<std::int64_t> local_slots;  // the number of each slot on its node

  void add(std::int32_t node) {
    if (static_cast<std::size_t>(node) >= sizes.size())
      sizes.resize(static_cast<std::size_t>(node) + 1);
    node_of_slot.push_back(node);
    local_slots.push_back(sizes[static_cast<std::size_t>(node)]++);
  }
};

// One function per format. All of them throw SpecError with the place and the reason.
Hosts read_hostfile(std::string_view text, std::string_view origin);
Hosts read_slurm_job(std::string_view text, std::string_view origin);
Network read_slurm_conf(std::string_view text, std::string_view origin);
Network read_slurm_yaml(std::string_view text, std::string_view origin);
Network read_topograph(std::string_view text, std::string_view origin);
NodeShape read_nvidia_smi(std::string_view text, std::string_view origin);
NodeShape read_hwloc(std::string_view text, std::string_view origin);
NodeShape read_nccl(std::string_view text, std::string_view origin);

/// Returns the XML of libhwloc for the node that this process runs on.
/// @throws UsageError if libhwloc fails, or if rankmesh was built without it.
std::string this_node_xml();

/// Returns the levels of the network between the hosts, outermost first. Their units have one entry
/// per host. Hosts that the network does not know are an error.
std::vector<MachineLevel> levels_of(const Network& network, const std::vector<std::string>& hosts,
                                    std::string_view origin);

}  // namespace rankmesh::detail
