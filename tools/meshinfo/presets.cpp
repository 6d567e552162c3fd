#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/presets.hpp"

namespace meshinfo {
namespace {

using rankmesh::PresetInfo;

std::string begin_of(const PresetInfo& preset) {
  return preset.kind.empty() ? fmt::format("{}:", preset.system)
                             : fmt::format("{}:kind={}", preset.system, preset.kind);
}

std::string keys_of(const PresetInfo& preset) {
  std::string text = fmt::format("{}   {}\n", begin_of(preset), preset.convention);
  std::vector<rankmesh::PresetKey> keys = preset.keys;
  keys.push_back({"world_size", "a whole number from 1 up",
                  "the number of ranks, checked or what sizes leave open"});
  std::size_t width = 0;
  for (const auto& key : keys) width = std::max(width, key.name.size());
  for (const auto& key : keys)
    text += fmt::format("  {:<{}}  {} ({})\n", key.name, width, key.meaning, key.form);
  return text;
}

std::string text_of(const std::string& system) {
  const auto catalogue = rankmesh::preset_catalogue();
  std::string text;
  std::vector<std::string> systems;
  std::size_t width = 0;
  for (const PresetInfo& preset : catalogue) width = std::max(width, begin_of(preset).size());
  for (const PresetInfo& preset : catalogue) {
    if (systems.empty() || systems.back() != preset.system) systems.emplace_back(preset.system);
    if (system.empty())
      text += fmt::format("  {:<{}}  {}\n", begin_of(preset), width, preset.convention);
    else if (preset.system == system)
      text += (text.empty() ? "" : "\n") + keys_of(preset);
  }
  if (text.empty())
    throw rankmesh::UsageError{fmt::format("unknown preset '{:.40}'", system),
                               fmt::format("presets: {}", fmt::join(systems, ", "))};
  return system.empty() ? text +
                              "\nmeshinfo presets SYSTEM lists the keys. They follow the colon: "
                              "megatron:tp=8,pp=16\n"
                        : text;
}

}  // namespace

void add_presets(CLI::App& app, int& status) {
  auto system = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("presets", "the layouts of established systems, and their keys");
  command->add_option("SYSTEM", *system, "list the keys of this one");
  command->callback([system, &status] {
    const std::string text = text_of(*system);
    if (is_printing_rank()) {
      Output output{{}};
      output.write(text);
      output.finish();
    }
    status = ok;
  });
}

}  // namespace meshinfo
