// SPDX-License-Identifier: BSD-3-Clause
// Writes a description as a TOML file.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/toml_options.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {
namespace {

std::string line(std::string_view key, std::string_view text) {
  return text.empty() ? "" : fmt::format("{} = {}\n", key, detail::quoted(text));
}

// There is one rule per line. The rules are written verbatim if TOML can express them: a literal
// text has no escapes.
std::string routes_line(const std::string& rules) {
  const bool is_literal = rules.ends_with('\n') && rules.find("'''") == std::string::npos &&
                          std::ranges::all_of(rules, [](unsigned char c) {
                            return c == '\n' || (c >= ' ' && c != 127);
                          });
  return is_literal ? fmt::format("routes = '''\n{}'''\n", rules) : line("routes", rules);
}

std::string list(std::string_view key, const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(detail::quoted(text));
  std::string short_form = fmt::format("{} = [{}]\n", key, fmt::join(items, ", "));
  if (short_form.size() <= 80) return short_form;
  return fmt::format("{} = [\n  {},\n]\n", key, fmt::join(items, ",\n  "));
}

std::string key(std::string_view name) {
  const bool is_bare = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_bare ? std::string{name} : detail::quoted(name);
}

// The options of a grid's families, such as encoder.tp, are in a table of the grid.
std::string header(std::string_view name, const std::vector<MeshSpec::Grid>& grids) {
  for (const MeshSpec::Grid& grid : grids)
    if (!grid.name.empty() && name.starts_with(grid.name + "."))
      return fmt::format("[options.{}.{}]", grid.name, key(name.substr(grid.name.size() + 1)));
  return fmt::format("[options.{}]", key(name));
}

}  // namespace

std::string MeshSpec::to_toml() const {
  const Grid& first = grids_.front();
  const bool has_grids = !first.name.empty();
  std::string text;
  if (!has_grids) text += line("mesh", first.mesh.to_string());
  if (stated_world_size_) text += fmt::format("world_size = {}\n", *stated_world_size_);
  if (!has_grids && first.rank_offset != 0)
    text += fmt::format("rank_offset = {}\n", first.rank_offset);
  if (!has_grids && first.ranks) text += line("rank_order", first.ranks->to_string());
  text += routes_line(routes_);
  text += list("transports", transports_);
  text += line("same_as", same_as_);
  text += list("silence", silenced_);
  text += line("source", provenance_.source);
  text += line("locator", provenance_.locator);
  text += list("given", provenance_.given);
  text += list("derived", provenance_.derived);
  text += list("unknown", provenance_.unknown);
  if (has_grids)
    for (const Grid& grid : grids_)
      text += fmt::format("\n[grids.{}]\n{}{}", grid.name, line("mesh", grid.mesh.to_string()),
                          line("ranks", grid.ranks->to_string()));
  if (!lists_.empty()) text += "\n[groups]\n";
  for (const Lists& lists : lists_) {
    std::vector<std::string> groups;
    for (const RankSet& group : lists.groups) groups.push_back(group.to_string());
    text += list(lists.name, groups);
  }
  for (const FamilyOptions& entry : options_)
    text +=
        fmt::format("\n{}\n{}", header(entry.name, grids_), detail::options_as_toml(entry.options));
  return text.starts_with('\n') ? text.substr(1) : text;
}

}  // namespace rankmesh
