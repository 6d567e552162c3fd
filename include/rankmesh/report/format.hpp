// What reports have in common.
#pragma once

#include <cstdint>
#include <functional>
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
};

}  // namespace rankmesh::report
