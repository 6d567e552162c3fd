// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/spec/presets.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "command_model.hpp"
#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"
#include "report/document.hpp"

namespace meshinfo {
namespace {

using rankmesh::PresetInfo;
using rankmesh::PresetKey;
using rankmesh::report::Document;
using rankmesh::report::Json;

// The beginning of a mesh string with this preset.
std::string begin_of(const PresetInfo& preset) {
  return preset.kind.empty() ? fmt::format("{}:", preset.system)
                             : fmt::format("{}:kind={}", preset.system, preset.kind);
}

// Its own keys and the one that all presets have.
std::vector<PresetKey> keys_of(const PresetInfo& preset) {
  std::vector<PresetKey> keys = preset.keys;
  keys.push_back({"world_size", "a whole number from 1 up",
                  "the number of ranks, for a size that is left open or as a check"});
  return keys;
}

std::string keys_text(const PresetInfo& preset) {
  const std::vector<PresetKey> keys = keys_of(preset);
  std::string text = fmt::format("{}   {}\n", begin_of(preset), preset.convention);
  std::size_t width = 0;
  for (const auto& key : keys) width = std::max(width, key.name.size());
  for (const auto& key : keys)
    text += fmt::format("  {:<{}}  {} ({})\n", key.name, width, key.meaning, key.form);
  return text;
}

Json preset_json(const PresetInfo& preset) {
  Json json{{"system", preset.system},
            {"kind", preset.kind.empty() ? Json() : Json(preset.kind)},
            {"convention", preset.convention}};
  for (const PresetKey& key : keys_of(preset))
    json["keys"].push_back({{"name", key.name}, {"form", key.form}, {"meaning", key.meaning}});
  return json;
}

// The systems of the presets, each once.
std::vector<std::string> systems() {
  std::vector<std::string> names;
  for (const PresetInfo& preset : rankmesh::preset_catalogue())
    if (names.empty() || names.back() != preset.system) names.emplace_back(preset.system);
  return names;
}

// Text lists all presets, or the keys of one system. JSON and CSV have the keys of every preset
// that is asked for.
Document presets_report(const std::string& system) {
  const auto catalogue = rankmesh::preset_catalogue();
  Document document{.schema = "rankmesh.presets/1"};
  document.table.add_columns({"preset", "convention", "key", "form", "meaning"});
  std::size_t width = 0;
  for (const PresetInfo& preset : catalogue) width = std::max(width, begin_of(preset).size());
  for (const PresetInfo& preset : catalogue) {
    if (!system.empty() && preset.system != system) continue;
    if (system.empty())
      document.add(fmt::format("  {:<{}}  {}\n", begin_of(preset), width, preset.convention));
    else
      document.add((document.text.empty() ? "" : "\n") + keys_text(preset));
    document.fields["presets"].push_back(preset_json(preset));
    for (const PresetKey& key : keys_of(preset))
      document.table.rows.push_back(
          {begin_of(preset), preset.convention, key.name, key.form, key.meaning});
  }
  if (document.text.empty())
    throw rankmesh::UsageError{fmt::format("unknown preset '{:.40}'", system),
                               rankmesh::detail::suggest(system, systems(), "the presets are")};
  if (system.empty())
    document.add(
        "\nmeshinfo presets SYSTEM lists the keys. They follow the colon: megatron:tp=8,pp=16\n");
  return document;
}

struct PresetsOptions {
  std::string system;
  OutputOptions output;
};

int presets(const PresetsOptions& options, const Job& job) {
  const Document document = presets_report(options.system);
  if (job.prints()) print(document, options.output);
  return ok;
}

}  // namespace

void add_presets(CLI::App& app, Program& program) {
  auto [command, options] = add_command<PresetsOptions>(
      app, program, "presets", "the layouts of established systems, and their keys", presets);
  offer(*add_word(command, "SYSTEM", options.system, "SYSTEM", "list the keys of this one"),
        systems());
  options.output.add_to(command);
}

}  // namespace meshinfo
