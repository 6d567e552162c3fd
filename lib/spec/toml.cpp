// SPDX-License-Identifier: BSD-3-Clause
// The TOML form of a mesh: docs/mesh-file.md.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <type_traits>

#include <fmt/format.h>

#include "detail/located.hpp"
#include "detail/text.hpp"
#include "detail/toml_reader.hpp"
#include "layout/detail/option_fields.hpp"
#include "rankmesh/base/detail/read_file.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {
namespace {

// Reads the options of a family: one key per field. MeshPlan::set_options() checks their values.
GroupOptions options_of(const detail::TomlReader& table) {
  static const std::vector<std::string> keys{
      "split_from", "share_resources",  "ranks_per_id",     "lazy",
      "blocking",   "priority",         "min_ctas",         "max_ctas",
      "duplicates", "cga_cluster_size", "traffic_class",    "timeout",
      "cta_policy", "nvls_ctas",        "graph_usage_mode", "warm_up_bytes"};
  table.require_known_keys(keys);
  GroupOptions options;
  detail::visit_options([&](const char* key, auto member, std::int64_t least) {
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

// These limits bound the memory that is allocated because of a small file.
constexpr std::int64_t max_listed = std::int64_t{1} << 20;  // ranks
constexpr std::size_t max_grids = 64;
constexpr std::size_t max_lists = 256;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r";
  const auto begin = text.find_first_not_of(blanks);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::string read_file(const std::string& path) {
  auto text = detail::read_file(path);
  if (!text)
    throw SpecError{fmt::format("cannot read the mesh file '{}': {}", path, std::strerror(errno)),
                    "check the path and its permissions on every node"};
  return *std::move(text);
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && text.size() <= 64 && is_letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

class MeshFileReader {
 public:
  MeshFileReader(const toml::table& table, std::string_view origin) : root_{table, origin} {
    spec_.origin_ = origin;
  }

  MeshSpec read() {
    static const std::vector<std::string> keys{
        "mesh",    "world_size", "rank_offset", "rank_order", "grids",   "groups",
        "options", "routes",     "transports",  "source",     "locator", "given",
        "derived", "unknown",    "same_as",     "silence",    "settings"};
    root_.require_known_keys(keys);
    read_settings();
    spec_.stated_world_size_ = root_.number("world_size", 1);
    spec_.world_size_line_ = root_.line("world_size");
    root_.find("grids") != nullptr ? read_grids() : read_mesh();
    read_lists();
    read_options();
    spec_.routes_ = root_.text("routes");
    spec_.routes_line_ = root_.line("routes");
    spec_.transports_ = root_.texts("transports");
    for (const std::string& name : spec_.transports_)
      if (const std::string why = RouteTable::why_no_name(name); !why.empty())
        root_.refuse(root_.line("transports"), fmt::format("'transports': {}", why),
                     "choose another name");
    if (!spec_.routes_.starts_with('@'))
      (void)RouteTable::parse(spec_.routes_, RouteSource::file, spec_.routes_origin(),
                              spec_.transports_);
    spec_.provenance_ = {root_.text("source"), root_.text("locator"), root_.texts("given"),
                         root_.texts("derived"), root_.texts("unknown")};
    spec_.same_as_ = root_.text("same_as");
    spec_.silenced_ = root_.texts("silence");
    if (!spec_.same_as_.empty())
      detail::located(spec_.origin_, root_.line("same_as"), "",
                      [&] { (void)MeshSpec::parse_string(spec_.same_as_); });
    return std::move(spec_);
  }

 private:
  MeshString mesh_string(const detail::TomlReader& table) {
    const std::string text = table.text("mesh");
    const std::int64_t line = table.line("mesh");
    if (text.ends_with(".toml") || text.ends_with(".json"))
      table.refuse(line, "'mesh' must be a mesh string, not another file",
                   "write the mesh string itself");
    return detail::located(spec_.origin_, line, "", [&] { return MeshString::parse(text); });
  }

  void read_mesh() {
    if (root_.text("mesh").empty())
      root_.refuse(root_.line("mesh"), "the file has no mesh",
                   "write mesh = \"pp=2,dp=4,tp=8\", or tables [grids.NAME]");
    MeshSpec::Grid grid{
        {}, mesh_string(root_), {}, root_.number("rank_offset", 0).value_or(0), root_.line("mesh")};
    if (const toml::node* order = root_.find("rank_order")) {
      if (root_.find("rank_offset") != nullptr)
        root_.refuse(root_.line("rank_order"), "'rank_order' and 'rank_offset' cannot be combined",
                     "remove one of them");
      grid.ranks = root_.ranks("rank_order", *order, max_listed);
    }
    spec_.grids_.push_back(std::move(grid));
  }

  void read_grids() {
    static const std::vector<std::string> keys{"mesh", "ranks"};
    for (const char* key : {"mesh", "rank_offset", "rank_order"})
      if (root_.find(key) != nullptr)
        root_.refuse(root_.line(key), fmt::format("'{}' cannot be combined with grids", key),
                     "write the mesh and the ranks of each grid in its table [grids.NAME]");
    for (const auto& entry : root_.entries_of("grids")) {
      if (!is_name(entry.key)) refuse_name(entry);
      if (spec_.grids_.size() == max_grids)
        root_.refuse(entry.line, fmt::format("more than {} grids", max_grids), "use fewer grids");
      const detail::TomlReader table = root_.table(entry);
      table.require_known_keys(keys);
      if (table.text("mesh").empty())
        root_.refuse(entry.line, fmt::format("the grid '{}' has no mesh", entry.key),
                     "write mesh = \"dp=2,tp=4\"");
      const toml::node* ranks = table.find("ranks");
      if (ranks == nullptr)
        root_.refuse(entry.line, fmt::format("the grid '{}' has no ranks", entry.key),
                     "write ranks = \"0-7\"");
      spec_.grids_.push_back({entry.key, mesh_string(table),
                              table.ranks("ranks", *ranks, max_listed), 0, table.line("mesh")});
    }
    if (spec_.grids_.empty())
      root_.refuse(root_.line("grids"), "'grids' is empty",
                   "write a table [grids.NAME] with mesh and ranks");
  }

  // Those of the training program (docs/search.md) are only kept.
  void read_settings() {
    (void)root_.entries_of("settings");  // refuses what is no table
    const toml::node* found = root_.find("settings");
    if (found == nullptr) return;
    toml::table settings = *found->as_table();
    settings.is_inline(false);  // it follows other tables
    std::ostringstream text;
    text << toml::table{{"settings", std::move(settings)}} << '\n';
    spec_.settings_ = text.str();
  }

  void read_lists() {
    std::int64_t left = max_listed;
    for (const auto& entry : root_.entries_of("groups")) {
      if (!is_name(entry.key)) refuse_name(entry);
      if (spec_.lists_.size() == max_lists)
        root_.refuse(entry.line, fmt::format("more than {} lists of groups", max_lists),
                     "use fewer lists");
      const toml::array* array = entry.value->as_array();
      if (array == nullptr || array->empty())
        root_.refuse(entry.line, fmt::format("'{}' must be a list of groups", entry.key),
                     "write [[0, 4], [1, 5]], or [\"0,4\", \"1,5\"]");
      MeshSpec::Lists lists{entry.key, {}, entry.line};
      for (const toml::node& group : *array) {
        lists.groups.push_back(root_.ranks(entry.key, group, max_listed));
        left -= lists.groups.back().size();
        if (left < 0)
          root_.refuse(group, fmt::format("the groups list more than {} ranks", max_listed),
                       "list fewer ranks");
      }
      spec_.lists_.push_back(std::move(lists));
    }
  }

  // The options of a grid's families are in a table of the grid: [options.encoder.tp].
  void read_options() {
    for (const auto& entry : root_.entries_of("options")) {
      const auto is_entry = [&](const MeshSpec::Grid& grid) { return grid.name == entry.key; };
      if (std::ranges::none_of(spec_.grids_, is_entry))
        add_options(entry.key, entry);
      else
        for (const auto& inner : root_.table(entry).entries())
          add_options(entry.key + "." + inner.key, inner);
    }
  }

  void add_options(const std::string& name, const detail::TomlReader::TomlEntry& entry) {
    if (std::ranges::find(spec_.options_, name, &MeshSpec::FamilyOptions::name) !=
        spec_.options_.end())
      root_.refuse(entry.line, fmt::format("duplicate options of '{:.40}'", name),
                   "write the options of a name in one table only");
    spec_.options_.push_back({name, options_of(root_.table(entry)), entry.line});
  }

  [[noreturn]] void refuse_name(const detail::TomlReader::TomlEntry& entry) const {
    root_.refuse(entry.line, fmt::format("'{:.40}' is not a valid name", entry.key),
                 "a name has at most 64 characters: a letter or '_', then letters, digits and '_'");
  }

  detail::TomlReader root_;
  MeshSpec spec_;
};

MeshSpec MeshSpec::parse(std::string_view text) {
  const std::string_view path = trimmed(text);
  if ((path.ends_with(".toml") || path.ends_with(".json")) && path.size() < 4096)
    return parse_toml(read_file(std::string{path}), path);
  return parse_string(text);
}

MeshSpec MeshSpec::parse_string(std::string_view text) {
  MeshSpec spec;
  spec.grids_.push_back({{}, MeshString::parse(text), {}, 0, 0});
  return spec;
}

MeshSpec MeshSpec::parse_toml(std::string_view text, std::string_view origin) {
  const toml::table table = detail::parse_toml(text, origin);
  return MeshFileReader{table, origin}.read();
}

}  // namespace rankmesh
