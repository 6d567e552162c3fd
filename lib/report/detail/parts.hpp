// SPDX-License-Identifier: BSD-3-Clause
// What several reports say: the views of a plan and their drawing, where groups lie on a machine,
// and the facts of a running job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "place/spread.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "report/document.hpp"
#include "report/live_facts.hpp"

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

/// Checks that the rank is in the world.
/// @throws UsageError if it is not.
inline void require_rank(const MeshPlan& plan, Rank rank) {
  if (rank.value() < 0 || rank.value() >= plan.world_size())
    throw UsageError{
        fmt::format("rank {} is outside the world of {} ranks", rank.value(), plan.world_size()),
        fmt::format("ranks run from 0 to {}", plan.world_size() - 1)};
}

/// A grid that would be wider is not drawn.
inline constexpr std::size_t max_grid_width = 120;

/// Returns the lines that the drawing takes, or 0 if the view is too large to be drawn.
/// @param width  of the terminal. A wider grid is divided: its columns continue below it.
std::size_t grid_lines(const Layout& view, const LiveFacts* live, std::size_t width);
/// Adds the drawing to the document's text.
void add_grid(const Layout& view, const LiveFacts* live, std::size_t width, Document& document);

/// Returns the numbers of the split groups, for example `0-7,12`; empty if no group is split.
std::string split_text(const LevelSpread& spread, std::int64_t groups);

/// Returns the spread over all levels as a JSON object.
Json spread_json(const Machine& machine, const std::vector<LevelSpread>& spreads,
                 std::int64_t groups);

inline constexpr std::size_t max_nodes = 8;

/// Returns what NCCL chose, as text, and the ranks on which it chose this.
std::vector<std::pair<std::string, std::vector<Rank>>> nccl_groups(const LiveFacts& live);

/// Returns the nodes with their ranks, processes and devices (at most max_nodes + 1 lines), how
/// long NCCL took to start, and what it chose.
std::string nodes_text(const LiveFacts& live);

}  // namespace rankmesh::report::detail
