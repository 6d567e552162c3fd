// SPDX-License-Identifier: BSD-3-Clause
#include "search/settings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "spec/detail/toml_reader.hpp"

namespace rankmesh::search {
namespace {

constexpr std::int64_t most_size = std::int64_t{1} << 30;
constexpr std::array<std::string_view, 3> recompute_names{"none", "selective", "full"};
constexpr std::array<std::string_view, 3> kind_names{"even", "counted", "uneven"};

}  // namespace

std::string_view to_string(Recompute recompute) {
  return recompute_names[static_cast<std::size_t>(recompute)];
}

std::string_view to_string(StageKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::string MeshSettings::mesh() const {
  const std::string cp_text = cp > 1 ? fmt::format(",cp={}", cp) : "";
  std::string text = fmt::format("pp={},dp={}{},tp={}", pp, dp, cp_text, tp);
  if (ep > 1)  // without blanks: a line of a report breaks at them
    text += fmt::format("|pp={},edp={},ep={}", pp, std::int64_t{1} * dp * cp * tp / ep, ep);
  return text;
}

StageLayers stage_layers(std::int64_t layers, const MeshSettings& settings) {
  const std::int64_t chunks = std::int64_t{1} * settings.pp * settings.virtual_stages;
  if (settings.stages == StageKind::even)
    return StageLayers::even(layers, settings.pp, settings.virtual_stages);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(chunks), (layers + 2) / chunks);
  for (std::int64_t more = 0; more < (layers + 2) % chunks; ++more)
    ++counts[static_cast<std::size_t>(more + 1)];
  --counts.front();  // the embedding
  --counts.back();   // the loss
  return StageLayers::given(counts, settings.virtual_stages);
}

namespace {

template <std::size_t n>
std::size_t read_name(const detail::TomlReader& reader, const char* key,
                      const std::array<std::string_view, n>& names) {
  const std::string text = reader.text(key);
  const auto found = std::ranges::find(names, text);
  if (!text.empty() && found == names.end())
    reader.refuse(reader.line(key), fmt::format("unknown {} '{:.40}'", key, text),
                  fmt::format("write {}", fmt::join(names, ", ")));
  return text.empty() ? 0 : static_cast<std::size_t>(found - names.begin());
}

std::optional<double> read_measured(const detail::TomlReader& reader, const char* key) {
  const toml::node* node = reader.find(key);
  if (node == nullptr) return {};
  const auto value = node->value<double>();
  if (!value || !(*value > 0) || !std::isfinite(*value))
    reader.refuse(reader.line(key), fmt::format("'{}' is no positive number", key),
                  fmt::format("write {} = 12.5, as measured", key));
  return value;
}

}  // namespace

std::string to_toml(const MeshSettings& s, std::int64_t layers) {
  std::string text = fmt::format(
      "mesh = \"{}\"\n\n[settings]\nmicro_batch = {}\nmicrobatches = {}\nvirtual_stages = {}\n"
      "zero = {}\nrecompute = \"{}\"\nsequence_parallel = {}\nstages = \"{}\"\n",
      s.mesh(), s.micro_batch, s.microbatches, s.virtual_stages, s.zero, to_string(s.recompute),
      s.sequence_parallel, to_string(s.stages));
  return text + fmt::format("layers = [{}]\n", fmt::join(chunk_layers(layers, s), ", "));
}

std::vector<std::int64_t> chunk_layers(std::int64_t layers, const MeshSettings& s) {
  const StageLayers stages = stage_layers(layers, s);
  std::vector<std::int64_t> counts;
  for (std::int64_t v = 0; v < s.virtual_stages; ++v)
    for (std::int64_t p = 0; p < s.pp; ++p) counts.push_back(stages.run(p, v).count);
  return counts;
}

bool has_search_order(std::string_view mesh) {
  const MeshPlan plan = MeshSpec::parse(std::string{mesh}).plan();
  std::int64_t last_stride = most_size;
  for (const std::string_view name : {"pp", "dp", "cp", "tp"})
    for (const auto& dimension : plan.views().front().dimensions()) {
      if (dimension.name != name || dimension.size == 1) continue;
      if (dimension.stride > last_stride) return false;
      last_stride = dimension.stride;
    }
  return true;
}

namespace {

MeshSettings settings_of(const MeshPlan& plan, std::string_view mesh) {
  MeshSettings s;
  const std::array<std::pair<std::string_view, std::int32_t*>, 5> sizes{
      {{"pp", &s.pp}, {"dp", &s.dp}, {"cp", &s.cp}, {"tp", &s.tp}, {"ep", &s.ep}}};
  if (plan.world_size() > most_size)
    throw SpecError{fmt::format("a search does not know meshes of {} ranks", plan.world_size()),
                    fmt::format("use {} ranks at most", most_size)};
  for (const Layout& view : plan.views())
    for (const auto& dimension : view.dimensions()) {
      const auto found =
          std::ranges::find(sizes, dimension.name, [](const auto& entry) { return entry.first; });
      if (found != sizes.end())
        *found->second = static_cast<std::int32_t>(dimension.size);
      else if (dimension.name != "edp" && dimension.size > 1)
        throw SpecError{fmt::format("a search does not know the dimension '{}'", dimension.name),
                        "use pp, dp, cp and tp, and edp and ep in a second view"};
    }
  if (s.ranks() != plan.world_size())
    throw SpecError{fmt::format("pp, dp, cp and tp of '{}' give {} ranks, and the mesh has {}",
                                mesh, s.ranks(), plan.world_size()),
                    "let the first view have pp, dp, cp and tp"};
  s.sequence_parallel = s.tp > 1;
  s.zero = s.dp * s.cp > 1 ? 1 : 0;
  return s;
}

}  // namespace

MeshSettings settings_of_mesh(std::string_view mesh) {
  return settings_of(MeshSpec::parse(std::string{mesh}).plan(), mesh);
}

SettingsRow parse_settings(std::string_view text, std::string_view origin) {
  const toml::table whole = detail::parse_toml(text, origin);
  const detail::TomlReader file{whole, origin};
  SettingsRow row{.settings = settings_of(MeshSpec::parse_toml(text, origin).plan(), origin),
                  .measured = {}};
  static const toml::table none;
  const toml::node* const node = file.find("settings");
  const toml::table& table = node == nullptr ? none : *node->as_table();
  const detail::TomlReader reader{table, origin};
  static const std::vector<std::string> keys{
      "micro_batch",       "microbatches", "virtual_stages", "zero",    "recompute",
      "sequence_parallel", "stages",       "layers",         "seconds", "memory_gb"};
  reader.require_known_keys(keys);
  MeshSettings& s = row.settings;
  const auto read = [&](const char* key, std::int32_t& to) {
    to = static_cast<std::int32_t>(reader.number(key, 1, most_size).value_or(to));
  };
  read("micro_batch", s.micro_batch);
  read("microbatches", s.microbatches);
  read("virtual_stages", s.virtual_stages);
  s.zero = static_cast<std::int8_t>(reader.number("zero", 0, 3).value_or(s.zero));
  if (s.dp * s.cp == 1) s.zero = 0;
  s.recompute = static_cast<Recompute>(read_name(reader, "recompute", recompute_names));
  s.stages = static_cast<StageKind>(read_name(reader, "stages", kind_names));
  s.sequence_parallel = reader.flag("sequence_parallel", s.sequence_parallel);
  row.measured.seconds = read_measured(reader, "seconds");
  if (const auto gb = read_measured(reader, "memory_gb")) row.measured.bytes = *gb * 1e9;
  return row;
}

}  // namespace rankmesh::search
