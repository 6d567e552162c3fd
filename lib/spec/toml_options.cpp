// SPDX-License-Identifier: BSD-3-Clause
#include "detail/toml_options.hpp"

#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::string options_as_toml(const GroupOptions& options) {
  const GroupOptions usual;
  std::string text;
  const auto number = [&](std::string_view key, const std::optional<int>& value) {
    if (value) text += fmt::format("{} = {}\n", key, *value);
  };
  if (!options.split_from.empty())
    text += fmt::format("split_from = {}\n", detail::quoted(options.split_from));
  if (options.share_resources) text += "share_resources = true\n";
  if (options.ranks_per_id != usual.ranks_per_id)
    text += fmt::format("ranks_per_id = {}\n", options.ranks_per_id);
  if (options.lazy) text += "lazy = true\n";
  if (!options.blocking) text += "blocking = false\n";
  if (options.priority != usual.priority) number("priority", options.priority);
  number("min_ctas", options.min_ctas);
  number("max_ctas", options.max_ctas);
  number("cga_cluster_size", options.cga_cluster_size);
  number("traffic_class", options.traffic_class);
  number("cta_policy", options.cta_policy);
  number("nvls_ctas", options.nvls_ctas);
  number("graph_usage_mode", options.graph_usage_mode);
  if (options.warm_up_bytes != usual.warm_up_bytes)
    text += fmt::format("warm_up_bytes = {}\n", options.warm_up_bytes);
  number("timeout", options.timeout);
  std::vector<std::string> keys;
  for (const std::string& key : options.duplicates) keys.push_back(detail::quoted(key));
  if (!keys.empty()) text += fmt::format("duplicates = [{}]\n", fmt::join(keys, ", "));
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (static_cast<unsigned char>(c) < ' ' || c == 127)
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      result += c;
  }
  return result + '"';
}

}  // namespace rankmesh::detail
