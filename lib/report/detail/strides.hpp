// SPDX-License-Identifier: BSD-3-Clause
// The dimensions of a view, as the reports that explain it list them.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/layout/layout.hpp"

namespace rankmesh::report::detail {

/// Returns the dimensions, largest stride first: the remainder of a division by a stride is smaller
/// than the stride.
inline std::vector<const Layout::Dimension*> by_stride(const Layout& view) {
  std::vector<const Layout::Dimension*> result;
  for (const auto& d : view.dimensions()) result.push_back(&d);
  std::ranges::stable_sort(result, std::ranges::greater{},
                           [](const Layout::Dimension* d) { return std::abs(d->stride); });
  return result;
}

/// Returns the dimension that varies fastest; null if no dimension has several coordinates.
inline const Layout::Dimension* fastest(const Layout& view) {
  const Layout::Dimension* best = nullptr;
  for (const auto& d : view.dimensions())
    if (d.size > 1 && (best == nullptr || std::abs(d.stride) < std::abs(best->stride))) best = &d;
  return best;
}

/// Returns the view as a mesh string.
inline std::string view_text(const Layout& view) {
  std::vector<std::string> items;
  for (const auto& d : view.dimensions()) items.push_back(fmt::format("{}={}", d.name, d.size));
  return fmt::format("{}", fmt::join(items, ","));
}

}  // namespace rankmesh::report::detail
