// SPDX-License-Identifier: BSD-3-Clause
// Writes places.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/element_types.hpp"
#include "detail/placement_data.hpp"

namespace rankmesh {
namespace {

std::string text_of(const std::vector<IndexRange>& list) {
  std::string text;
  for (const IndexRange& range : list)
    text += fmt::format("{}{}{}", text.empty() ? "" : ",", range.first,
                        range.count == 1 ? "" : fmt::format("-{}", range.end() - 1));
  return text.empty() ? "_" : text;
}

std::string text_of(const AxisSplit& split) {
  switch (split.rule) {
    case ShareRule::even:
      return split.dimension;
    case ShareRule::ceiling:
      return split.dimension + ":ceil";
    case ShareRule::sizes:
      return fmt::format("{}:sizes({})", split.dimension, fmt::join(split.sizes, ","));
    case ShareRule::cyclic:
      return split.block == 1 ? split.dimension + ":cyclic"
                              : fmt::format("{}:cyclic({})", split.dimension, split.block);
    case ShareRule::lists:
      break;
  }
  std::vector<std::string> lists;
  for (const auto& list : split.lists) lists.push_back(text_of(list));
  return fmt::format("{}:lists({})", split.dimension, fmt::join(lists, "; "));
}

// Segments that follow each other and have the whole axis are written with their sizes.
std::string text_of(const AxisPlacement& axis, std::int64_t size) {
  std::int64_t end = 0;
  for (const AxisSegment& segment : axis)
    end = segment.range.first == end ? segment.range.end() : INT64_MAX;
  std::string text;
  for (const AxisSegment& segment : axis) {
    if (!text.empty()) text += " + ";
    const IndexRange& range = segment.range;
    if (end != size || axis.size() > 1)
      text += end == size ? fmt::format("{}:", range.count)
                          : fmt::format("{}-{}:", range.first, range.end() - 1);
    std::vector<std::string> splits;
    for (const AxisSplit& split : segment.splits) splits.push_back(text_of(split));
    text += splits.empty() ? "_" : fmt::format("{}", fmt::join(splits, "*"));
  }
  return text;
}

}  // namespace

void TensorPlacement::Data::write() {
  text = fmt::format("[{}] {} @ {}", fmt::join(shape, ","), detail::short_name(type), mesh);
  if (on) text += " on " + on->to_string();
  for (std::size_t f = 0; f < at.size(); ++f)
    text += fmt::format("{}{}={}", f == 0 ? " at " : ",", at[f].first, at[f].second);
  std::vector<std::string> parts;
  for (std::size_t a = 0; a < axes.size(); ++a) parts.push_back(text_of(axes[a], shape[a]));
  text += fmt::format(" : ({})", fmt::join(parts, ", "));
  for (const std::string& name : sums) text += fmt::format(" sum({})", name);
}

}  // namespace rankmesh
