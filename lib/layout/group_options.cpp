// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/group_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rankmesh {

bool GroupOptions::can_share(const GroupOptions& other) const {
  GroupOptions mine = *this;
  mine.lazy = other.lazy;
  mine.duplicates = other.duplicates;
  return mine == other;
}

std::string GroupOptions::to_string() const {
  std::vector<std::string> parts;
  const auto flag = [&](std::string_view name, bool value) {
    if (value) parts.emplace_back(name);
  };
  const auto number = [&](std::string_view name, const std::optional<int>& value) {
    if (value) parts.push_back(fmt::format("{}={}", name, *value));
  };
  if (!split_from.empty()) parts.push_back("split_from=" + split_from);
  flag("share_resources", share_resources);
  if (ranks_per_id != GroupOptions{}.ranks_per_id)
    parts.push_back(fmt::format("ranks_per_id={}", ranks_per_id));
  flag("lazy", lazy);
  if (!blocking) parts.emplace_back("blocking=false");
  if (priority != 0) parts.push_back(fmt::format("priority={}", priority));
  number("min_ctas", min_ctas);
  number("max_ctas", max_ctas);
  number("cga_cluster_size", cga_cluster_size);
  number("traffic_class", traffic_class);
  number("cta_policy", cta_policy);
  number("nvls_ctas", nvls_ctas);
  number("graph_usage_mode", graph_usage_mode);
  if (warm_up_bytes != 0) parts.push_back(fmt::format("warm_up_bytes={}", warm_up_bytes));
  number("timeout", timeout);
  if (!duplicates.empty())
    parts.push_back(fmt::format("duplicates={}", fmt::join(duplicates, "+")));
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace rankmesh
