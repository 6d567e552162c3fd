// SPDX-License-Identifier: BSD-3-Clause
// The facts that only a running job has.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/layout/placement.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "report/nccl_choice.hpp"

namespace rankmesh::report {

/// Facts that only a running job has. They are gathered on the rank that prints the report.
struct LiveFacts {
  Placement placement;                    ///< The node of each rank.
  std::vector<std::string> hosts;         ///< host name of each node
  std::vector<std::int64_t> process_ids;  ///< process ID of each rank
  /// For each node, why its ranks share no memory; empty texts for the others.
  std::vector<std::string> why_no_shared_memory{};
  std::vector<int> devices{};    ///< CUDA's device number of each rank; empty without devices
  std::string why_no_devices{};  ///< the reason why there are no devices, if there are none
  /// The durations of the phases of NCCL's bootstrap, in seconds. Each duration is the maximum over
  /// all ranks.
  struct Phases {
    double unique_ids = 0;  ///< The time to create the unique IDs.
    double broadcasts = 0;  ///< The time to broadcast the unique IDs.
    double barriers = 0;    ///< The time in the barriers of the groups.
    double inits = 0;       ///< The time in the initialisations of NCCL.
    double splits = 0;      ///< The time in the splits of NCCL.
  };
  std::optional<Phases> phases{};  ///< not set if the mesh has no devices
  /// The costs of opening the communicators of one family. Each figure is the maximum over all
  /// ranks.
  struct Opened {
    double warm_up = 0;               ///< seconds
    std::int64_t device_memory = -1;  ///< bytes per communicator; -1 if no communicator was opened
  };
  std::vector<Opened> opened{};  ///< one entry per family
  /// What NCCL chose on each rank; empty if it is not known.
  std::vector<NcclChoice> nccl{};
};

/// What the transports of a running job are.
struct RouteFacts {
  Placement placement;  ///< The node of each rank.
  /// Asks this rank's coordinator of the family `name` which transport it uses. Returns nothing if
  /// this rank has no such coordinator.
  std::function<std::optional<RouteExplanation>(const std::string& name, const RouteQuery&)>
      explain;
};

}  // namespace rankmesh::report
