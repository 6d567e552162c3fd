// What reports have in common.
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

/// Receives a report piece by piece; may throw to end it.
using Sink = std::function<void(std::string_view)>;

/// What only a running job knows, gathered on the rank that prints.
struct LiveFacts {
  Placement placement;
  std::vector<std::string> hosts;         ///< per node
  std::vector<std::int64_t> process_ids;  ///< per rank
  std::vector<int> devices{};    ///< per rank, by CUDA's number; empty where the mesh has none
  std::string why_no_devices{};  ///< where it has none
  /// NCCL's bootstrap, each the longest of all ranks, in seconds; nothing without devices.
  struct Phases {
    double unique_ids = 0, broadcasts = 0, barriers = 0, inits = 0, splits = 0;
  };
  std::optional<Phases> phases{};
  /// Per name, the most of all ranks.
  struct Opened {
    double warm_up = 0;               ///< seconds
    std::int64_t device_memory = -1;  ///< bytes per communicator; -1 where none was opened
  };
  std::vector<Opened> opened{};
};

}  // namespace rankmesh::report
