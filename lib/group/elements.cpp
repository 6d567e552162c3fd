// SPDX-License-Identifier: BSD-3-Clause
// Calls on elements that operations see as several elements of a DataType.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/calls.hpp"

namespace rankmesh::detail {
namespace {

// A product that would overflow is larger than any buffer, so the check of the call refuses it.
std::vector<std::int64_t> times(const std::vector<std::int64_t>& values, std::int64_t factor) {
  std::vector<std::int64_t> products;
  products.reserve(values.size());
  for (const std::int64_t value : values)
    products.push_back(value > std::numeric_limits<std::int64_t>::max() / factor
                           ? std::numeric_limits<std::int64_t>::max()
                       : value < 0 ? value
                                   : value * factor);
  return products;
}

}  // namespace

Blocks scaled(const Blocks& blocks, std::size_t of_element, std::size_t of_leaf) {
  const auto factor = static_cast<std::int64_t>(blocks.rows() == 0 ? of_element : of_leaf);
  return {{times(blocks.counts(), factor), times(blocks.displacements(), factor)},
          blocks.rows(),
          factor};
}

void require_complex(ReduceOp op) {
  if (op == ReduceOp::sum || op == ReduceOp::avg) return;
  throw UsageError{fmt::format("complex numbers cannot be reduced with {}", to_string(op)),
                   "use sum or avg, or pass a function of your own, such as std::multiplies<>{}"};
}

}  // namespace rankmesh::detail
