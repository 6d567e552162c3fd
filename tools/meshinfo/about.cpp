// SPDX-License-Identifier: BSD-3-Clause
// The commands that say what meshinfo knows and uses: presets and version.
#include <algorithm>

#include <fmt/format.h>

#include "command.hpp"
#include "command_model.hpp"
#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/spec/presets.hpp"
#include "rankmesh/version.hpp"

namespace rankmesh::meshinfo {
namespace {

// The beginning of a mesh string with this preset.
std::string begin_of(const PresetInfo& preset) {
  return fmt::format("{}:{}{}", preset.system, preset.kind.empty() ? "" : "kind=", preset.kind);
}

// Its own keys and the one that all presets have.
std::vector<PresetKey> keys_of(const PresetInfo& preset) {
  std::vector<PresetKey> keys = preset.keys;
  keys.push_back({"world_size", "a whole number from 1 up",
                  "the number of ranks, for a size that is left open or as a check"});
  return keys;
}

// The systems of the presets, each once.
std::vector<std::string> systems() {
  std::vector<std::string> names;
  for (const PresetInfo& preset : preset_catalogue())
    if (names.empty() || names.back() != preset.system) names.emplace_back(preset.system);
  return names;
}

// Adds the keys of a preset to the forms that have them.
void add_keys(const PresetInfo& preset, bool is_in_text, Document& document) {
  const std::vector<PresetKey> keys = keys_of(preset);
  std::size_t width = 0;
  for (const PresetKey& key : keys) width = std::max(width, key.name.size());
  Json& json = document.fields["presets"].emplace_back(
      Json{{"system", preset.system},
           {"kind", preset.kind.empty() ? Json() : Json(preset.kind)},
           {"convention", preset.convention}});
  for (const PresetKey& key : keys) {
    json["keys"].push_back({{"name", key.name}, {"form", key.form}, {"meaning", key.meaning}});
    document.table.rows.push_back(
        {begin_of(preset), preset.convention, key.name, key.form, key.meaning});
    if (is_in_text)
      document.add(fmt::format("  {:<{}}  {} ({})\n", key.name, width, key.meaning, key.form));
  }
}

// Text lists all presets, or the keys of one system. JSON and CSV have the keys of every preset
// that is asked for.
Document presets_report(const std::string& system) {
  const auto catalogue = preset_catalogue();
  Document document{.schema = "rankmesh.presets/1"};
  document.table.add_columns({"preset", "convention", "key", "form", "meaning"});
  std::size_t width = 0;
  for (const PresetInfo& preset : catalogue) width = std::max(width, begin_of(preset).size());
  for (const PresetInfo& preset : catalogue) {
    if (!system.empty() && preset.system != system) continue;
    document.add(system.empty()
                     ? fmt::format("  {:<{}}  {}\n", begin_of(preset), width, preset.convention)
                     : fmt::format("{}{}   {}\n", document.text.empty() ? "" : "\n",
                                   begin_of(preset), preset.convention));
    add_keys(preset, !system.empty(), document);
  }
  if (document.text.empty())
    throw UsageError{fmt::format("unknown preset '{:.40}'", system),
                     detail::suggest(system, systems(), "the presets are")};
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

Document version_report() {
  Document document{.schema = "rankmesh.version/1", .fields = {{"rankmesh", version_string()}}};
  document.table.add_columns({"library", "version", "path", "why not found"});
  document.table.rows.push_back({"rankmesh", version_string(), "", ""});
  document.add(fmt::format("{:<14}{}\n", "rankmesh", version_string()));
  for (const LibraryInfo& c : components()) {
    document.add(c.version.empty() ? fmt::format("{:<14}not found ({})\n", c.name, c.why_not)
                                   : fmt::format("{:<14}{}  {}\n", c.name, c.version, c.path));
    document.fields["libraries"][c.name] =
        c.version.empty() ? Json() : Json{{"version", c.version}, {"path", c.path}};
    document.table.rows.push_back({c.name, c.version, c.path, c.why_not});
  }
  document.add("built with\n");
  const BuildInfo info = build_info();
  for (const auto& [name, version] :
       {std::pair{"MPI", info.mpi}, std::pair{"compiler", info.compiler},
        std::pair{"CUDA headers", info.cuda_headers},
        std::pair{"NCCL headers", info.nccl_headers}}) {
    const bool is_there = *version != '\0';
    document.add(fmt::format("  {:<12}  {}\n", name, is_there ? version : "none"));
    document.fields["built_with"][name] = is_there ? Json(version) : Json();
    document.table.rows.push_back({fmt::format("built with {}", name), version, "", ""});
  }
  return document;
}

int version(const OutputOptions& output, const Job& job) {
  if (job.prints()) print(version_report(), output);
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

void add_version(CLI::App& app, Program& program) {
  auto [command, output] = add_command<OutputOptions>(
      app, program, "version", "the versions of rankmesh and of the libraries it uses", version);
  output.add_to(command);
}

}  // namespace rankmesh::meshinfo
