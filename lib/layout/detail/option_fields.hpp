// SPDX-License-Identifier: BSD-3-Clause
// The options of a family as a list: for their text, for mesh files, and for the reader of those.
#pragma once

#include <cstdint>

#include "rankmesh/layout/group_options.hpp"

namespace rankmesh::detail {

/// Calls `visit(key, member, least)` for every option, in the order in which texts show them.
/// `least` is the least value of a number in a mesh file.
template <class Visit>
void visit_options(Visit&& visit) {
  using Options = GroupOptions;
  constexpr std::int64_t any = INT32_MIN;
  visit("split_from", &Options::split_from, any);
  visit("share_resources", &Options::share_resources, any);
  visit("ranks_per_id", &Options::ranks_per_id, 0);
  visit("lazy", &Options::lazy, any);
  visit("blocking", &Options::blocking, any);
  visit("priority", &Options::priority, any);
  visit("min_ctas", &Options::min_ctas, 1);
  visit("max_ctas", &Options::max_ctas, 1);
  visit("cga_cluster_size", &Options::cga_cluster_size, 0);
  visit("traffic_class", &Options::traffic_class, any);
  visit("cta_policy", &Options::cta_policy, 0);
  visit("nvls_ctas", &Options::nvls_ctas, 1);
  visit("graph_usage_mode", &Options::graph_usage_mode, 0);
  visit("warm_up_bytes", &Options::warm_up_bytes, 0);
  visit("timeout", &Options::timeout, 1);
  visit("duplicates", &Options::duplicates, any);
}

}  // namespace rankmesh::detail
