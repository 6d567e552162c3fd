// SPDX-License-Identifier: BSD-3-Clause
// The rules of a mesh, resolved once for all groups that the rules do not distinguish.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "connection.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/routes/route_table.hpp"

namespace rankmesh::detail {

/// What a Router chooses, with numbers of transports instead of their addresses. The numbers are
/// the places in HostTransports::list.
struct RoutePattern {
  /// The end of the last range of sizes.
  static constexpr std::uint64_t endless = ~std::uint64_t{0};
  /// The candidates for a range of sizes.
  struct PatternChoice {
    std::uint64_t end = endless;     ///< The end of the range, which is excluded.
    std::uint32_t first = 0;         ///< The first candidate.
    std::uint32_t others = 0;        ///< The number of candidates after the first.
    std::uint32_t begin_others = 0;  ///< In RoutePattern::others.
    [[nodiscard]] bool routes_like(const PatternChoice& other) const {
      return first == other.first && others == other.others && begin_others == other.begin_others;
    }
    friend bool operator==(const PatternChoice&, const PatternChoice&) = default;
  };
  /// The lists of choices for calls of one operation and type.
  struct PatternCell {
    std::uint32_t by_size = 0;
    std::uint32_t without_size = 0;
    friend bool operator==(const PatternCell&, const PatternCell&) = default;
  };
  using PatternRow = std::array<PatternCell, type_class_count>;

  std::array<PatternRow, operation_count> rows{};
  std::vector<std::vector<PatternChoice>>
      lists;  ///< One choice per range of sizes; no two are equal.
  std::vector<std::uint32_t> others;

  /// Computes the pattern of groups of this scope with these transports. Local.
  RoutePattern(const RouteTable& routes, const RouteScope& scope, const HostTransports& transports);

 private:
  [[nodiscard]] std::uint32_t add(const RouteTable& routes, const HostTransports& transports,
                                  const std::vector<RouteSegment>& segments);
};

/// Keeps the patterns of a mesh. Most groups of a mesh differ in nothing that a rule tests.
class ResolvedRoutes {
 public:
  /// @param routes  Must outlive this object.
  explicit ResolvedRoutes(const RouteTable& routes) : routes_{routes} {}

  /// Returns the pattern of groups of this scope with these transports. Valid as long as this
  /// object. Local.
  const RoutePattern& pattern(const RouteScope& scope, const HostTransports& transports);

 private:
  struct KnownPattern {
    RouteScope scope;
    std::vector<std::string> transports;  // the names
    RoutePattern pattern;
  };

  const RouteTable& routes_;
  std::list<KnownPattern> known_;
};

}  // namespace rankmesh::detail
