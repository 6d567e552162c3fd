// SPDX-License-Identifier: BSD-3-Clause
#include "detail/toml_options.hpp"

#include <cstdint>
#include <type_traits>

#include "layout/detail/option_fields.hpp"

namespace rankmesh::detail {

GroupOptions read_options(const TomlReader& table) {
  static const std::vector<std::string> keys{
      "split_from", "share_resources",  "ranks_per_id",     "lazy",
      "blocking",   "priority",         "min_ctas",         "max_ctas",
      "duplicates", "cga_cluster_size", "traffic_class",    "timeout",
      "cta_policy", "nvls_ctas",        "graph_usage_mode", "warm_up_bytes"};
  table.require_known_keys(keys);
  GroupOptions options;
  visit_options([&](const char* key, auto member, std::int64_t least) {
    auto& value = options.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::string>) {
      value = table.text(key);
    } else if constexpr (std::is_same_v<Value, bool>) {
      value = table.flag(key, value);
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      value = table.texts(key);
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      value = table.number(key, least).value_or(value);
    } else if (const auto number = table.number(key, least, INT32_MAX)) {
      value = static_cast<int>(*number);
    }
  });
  return options;
}

}  // namespace rankmesh::detail
