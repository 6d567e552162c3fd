// SPDX-License-Identifier: BSD-3-Clause
// A system of difference constraints between clocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rankmesh::record::detail {

/// Holds the constraints shift(b) - shift(a) <= limit between clocks, of which clock 0 stays.
class DifferenceConstraints {
 public:
  /// Creates a system without constraints between clocks.
  /// @param bounds  the largest absolute shift of each clock; 0 for clock 0.
  explicit DifferenceConstraints(std::vector<std::int64_t> bounds);

  /// Adds the constraint shift(b) - shift(a) <= limit.
  void require(std::size_t a, std::size_t b, std::int64_t limit);

  /// Shifts that satisfy the constraints, and how far each clock could still be moved.
  struct Solution {
    std::vector<std::int64_t> shifts;
    std::vector<std::int64_t> errors;
  };
  /// Returns the shifts whose largest fraction of the bound is as small as possible. Each shift is
  /// as near to 0 as the other shifts permit. Returns nothing if the constraints contradict each
  /// other. Takes O(N^3) time.
  [[nodiscard]] std::optional<Solution> solve() const;

  [[nodiscard]] std::size_t size() const { return bounds_.size(); }
  /// Returns the limit of shift(b) - shift(a), or a very large number.
  [[nodiscard]] std::int64_t limit(std::size_t a, std::size_t b) const {
    return limits_[a * size() + b];
  }

 private:
  using Shifts = std::vector<std::int64_t>;
  enum class Extreme : std::uint8_t { highest, lowest };

  [[nodiscard]] std::optional<Shifts> extreme(Extreme which, const Shifts& bounds) const;
  [[nodiscard]] Shifts scaled_bounds(std::int64_t parts) const;
  void move_towards_zero(const Shifts& bounds, Shifts& shifts) const;

  Shifts bounds_;
  Shifts limits_;  ///< of each pair of clocks
};

}  // namespace rankmesh::record::detail
