// SPDX-License-Identifier: BSD-3-Clause
// What the calls of the table of conformance read, and what they give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "rankmesh/conformance/conformance.hpp"

namespace rankmesh::conformance {

using Bytes = std::vector<std::byte>;

/// What one reduction of one type reads and gives at each place. The values repeat.
struct ReductionValues {
  Bytes own, result;
  /// Counts the elements that differ from the results from `place` on. Which NaN a result is does
  /// not matter; all other bits do.
  std::function<std::int64_t(const std::byte* is, std::int64_t place, std::int64_t count)> wrong;
};

/// Computes the values of a reduction that combines the first members, so many as `combined` says,
/// in this order. Without an order, rounded results need not be exact.
ReductionValues values_of(DataType type, ReduceOp op, const Carrier& carrier, const Order& order,
                          std::int64_t combined);

/// Copies the elements from `place` on, which repeat.
void repeat(const Bytes& values, std::int64_t place, std::byte* to, std::int64_t count,
            std::int64_t element);

/// Writes `bytes` bytes of what a member has from byte `begin` on, which nobody else has.
void fill_moved(std::byte* to, std::int64_t member, std::int64_t begin, std::int64_t bytes,
                std::int64_t number);

}  // namespace rankmesh::conformance
