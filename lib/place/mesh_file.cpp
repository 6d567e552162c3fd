// SPDX-License-Identifier: BSD-3-Clause
#include "place/mesh_file.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layout/detail/option_fields.hpp"

namespace rankmesh {
namespace {

// Returns the text as a TOML string with its quotes.
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

std::vector<std::string> quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> result;
  for (const std::string& text : texts) result.push_back(quoted(text));
  return result;
}

std::string line(std::string_view key, std::string_view text) {
  return text.empty() ? "" : fmt::format("{} = {}\n", key, quoted(text));
}

// There is one rule per line. The rules are written verbatim if TOML can express them: a literal
// text has no escapes.
std::string routes_line(const std::string& text) {
  const bool is_literal = text.ends_with('\n') && text.find("'''") == std::string::npos &&
                          std::ranges::all_of(text, [](unsigned char c) {
                            return c == '\n' || (c >= ' ' && c != 127);
                          });
  return is_literal ? fmt::format("routes = '''\n{}'''\n", text) : line("routes", text);
}

std::string list(std::string_view key, const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  const std::vector<std::string> items = quoted(texts);
  std::string short_form = fmt::format("{} = [{}]\n", key, fmt::join(items, ", "));
  if (short_form.size() <= 80) return short_form;
  return fmt::format("{} = [\n  {},\n]\n", key, fmt::join(items, ",\n  "));
}

std::string key(std::string_view name) {
  const bool is_bare = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_bare ? std::string{name} : quoted(name);
}

// The options of a grid's families, such as encoder.tp, are in a table of the grid.
std::string header(std::string_view name, const std::vector<MeshSpec::Grid>& grids) {
  for (const MeshSpec::Grid& grid : grids)
    if (!grid.name.empty() && name.starts_with(grid.name + "."))
      return fmt::format("[options.{}.{}]", grid.name, key(name.substr(grid.name.size() + 1)));
  return fmt::format("[options.{}]", key(name));
}

// Returns one line per option that differs from its default.
std::string options_as_toml(const GroupOptions& options) {
  const GroupOptions usual;
  std::string text;
  detail::visit_options([&](const char* key, auto member, std::int64_t) {
    const auto& value = options.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if (value == usual.*member) return;
    if constexpr (std::is_same_v<Value, std::string>)
      text += line(key, value);
    else if constexpr (std::is_same_v<Value, std::optional<int>>)
      text += fmt::format("{} = {}\n", key, *value);
    else if constexpr (std::is_same_v<Value, std::vector<std::string>>)
      text += fmt::format("{} = [{}]\n", key, fmt::join(quoted(value), ", "));
    else
      text += fmt::format("{} = {}\n", key, value);
  });
  return text;
}

}  // namespace

std::string to_toml(const MeshSpec& spec, std::optional<std::int64_t> world_size) {
  const std::vector<MeshSpec::Grid>& grids = spec.grids();
  const MeshSpec::Grid& first = grids.front();
  const bool has_grids = !first.name.empty();
  std::string text;
  if (!has_grids) text += line("mesh", first.mesh.to_string());
  if (const auto size = world_size ? world_size : spec.stated_world_size())
    text += fmt::format("world_size = {}\n", *size);
  if (!has_grids && first.rank_offset != 0)
    text += fmt::format("rank_offset = {}\n", first.rank_offset);
  if (!has_grids && first.ranks) text += line("rank_order", first.ranks->to_string());
  text += routes_line(spec.routes());
  text += list("transports", spec.transports());
  text += line("same_as", spec.same_as());
  text += list("silence", spec.silenced());
  text += line("source", spec.provenance().source);
  text += line("locator", spec.provenance().locator);
  text += list("given", spec.provenance().given);
  text += list("derived", spec.provenance().derived);
  text += list("unknown", spec.provenance().unknown);
  if (has_grids)
    for (const MeshSpec::Grid& grid : grids)
      text += fmt::format("\n[grids.{}]\n{}{}", grid.name, line("mesh", grid.mesh.to_string()),
                          line("ranks", grid.ranks->to_string()));
  if (!spec.lists().empty()) text += "\n[groups]\n";
  for (const MeshSpec::Lists& lists : spec.lists()) {
    std::vector<std::string> groups;
    for (const RankSet& group : lists.groups) groups.push_back(group.to_string());
    text += list(lists.name, groups);
  }
  for (const MeshSpec::FamilyOptions& entry : spec.options())
    text += fmt::format("\n{}\n{}", header(entry.name, grids), options_as_toml(entry.options));
  if (!spec.settings().empty()) text += "\n" + spec.settings();
  return text.starts_with('\n') ? text.substr(1) : text;
}

}  // namespace rankmesh
