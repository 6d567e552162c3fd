// SPDX-License-Identifier: BSD-3-Clause
#include "detail/toml_options.hpp"

#include <limits>

namespace rankmesh::detail {
namespace {

constexpr std::int64_t least_int = std::numeric_limits<int>::min();
constexpr std::int64_t most_int = std::numeric_limits<int>::max();

std::optional<int> as_int(const std::optional<std::int64_t>& number) {
  return number ? std::optional{static_cast<int>(*number)} : std::nullopt;
}

}  // namespace

GroupOptions read_options(const TomlReader& table) {
  static const std::vector<std::string> keys{
      "split_from", "share_resources",  "ranks_per_id",     "lazy",
      "blocking",   "priority",         "min_ctas",         "max_ctas",
      "duplicates", "cga_cluster_size", "traffic_class",    "timeout",
      "cta_policy", "nvls_ctas",        "graph_usage_mode", "warm_up_bytes"};
  table.require_known_keys(keys);
  GroupOptions options;
  options.split_from = table.text("split_from");
  options.share_resources = table.flag("share_resources");
  options.ranks_per_id = table.number("ranks_per_id", 0).value_or(options.ranks_per_id);
  options.lazy = table.flag("lazy");
  options.blocking = table.flag("blocking", true);
  options.priority =
      as_int(table.number("priority", least_int, most_int)).value_or(options.priority);
  options.min_ctas = as_int(table.number("min_ctas", 1, most_int));
  options.max_ctas = as_int(table.number("max_ctas", 1, most_int));
  options.cga_cluster_size = as_int(table.number("cga_cluster_size", 0, most_int));
  options.traffic_class = as_int(table.number("traffic_class", least_int, most_int));
  options.cta_policy = as_int(table.number("cta_policy", 0, most_int));
  options.nvls_ctas = as_int(table.number("nvls_ctas", 1, most_int));
  options.graph_usage_mode = as_int(table.number("graph_usage_mode", 0, most_int));
  options.warm_up_bytes = table.number("warm_up_bytes", 0).value_or(options.warm_up_bytes);
  options.timeout = as_int(table.number("timeout", 1, most_int));
  options.duplicates = table.texts("duplicates");
  return options;
}

}  // namespace rankmesh::detail
