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

/// Receives a report piece by piece. It may throw to end the report.
using Sink = std::function<void(std::string_view)>;

/// Facts that only a running job has, gathered on the rank that prints.
struct LiveFacts {
  Placement placement;
  std::vector<std::string> hosts;         ///< per node
  std::vector<std::int64_t> process_ids;  ///< per rank
  std::vector<int> devices{};    ///< per rank, CUDA's number; empty if the mesh has no devices
  std::string why_no_devices{};  ///< the reason if it has none
  /// The phases of NCCL's bootstrap in seconds, each the longest of all ranks.
  struct Phases {
    double unique_ids = 0, broadcasts = 0, barriers = 0, inits = 0, splits = 0;
  };
  std::optional<Phases> phases{};  ///< nothing without devices
  /// The highest figures of all ranks, per name.
  struct Opened {
    double warm_up = 0;               ///< seconds
    std::int64_t device_memory = -1;  ///< bytes per communicator; -1 if none was opened
  };
  std::vector<Opened> opened{};
};

}  // namespace rankmesh::report
