// SPDX-License-Identifier: BSD-3-Clause
// The forms of a report, and the facts of a running job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/layout/placement.hpp"

namespace rankmesh::report {

enum class Format : std::uint8_t { text, json, csv };

/// Receives a report piece by piece. The sink may throw an exception to end the report.
using Sink = std::function<void(std::string_view)>;

/// Facts that only a running job has. They are gathered on the rank that prints.
struct LiveFacts {
  Placement placement;
  std::vector<std::string> hosts;         ///< per node
  std::vector<std::int64_t> process_ids;  ///< per rank
  std::vector<int> devices{};             ///< CUDA's number per rank; empty if there are no devices
  std::string why_no_devices{};           ///< the reason if there are no devices
  /// The phases of NCCL's bootstrap in seconds, where each time is the longest time of all ranks.
  struct Phases {
    double unique_ids = 0, broadcasts = 0, barriers = 0, inits = 0, splits = 0;
  };
  std::optional<Phases> phases{};  ///< not set if the mesh has no devices
  /// The highest figures of all ranks, per name.
  struct Opened {
    double warm_up = 0;               ///< seconds
    std::int64_t device_memory = -1;  ///< bytes per communicator; -1 if no communicator was opened
  };
  std::vector<Opened> opened{};
};

}  // namespace rankmesh::report
