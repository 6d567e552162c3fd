// SPDX-License-Identifier: BSD-3-Clause
#include "completion.hpp"

#include <memory>

#include <fmt/format.h>

#include "output.hpp"
#include "rankmesh/spec/presets.hpp"

namespace meshinfo {

Completes completes(const OptionModel& option) {
  if (!option.choices.empty()) return Completes::choices;
  if (option.value == "MESH") return Completes::meshes;
  if (option.value == "FILE") return Completes::files;
  return option.value == "FOLDER" ? Completes::folders : Completes::nothing;
}

std::vector<std::string> preset_beginnings() {
  std::vector<std::string> beginnings;
  for (const rankmesh::PresetInfo& preset : rankmesh::preset_catalogue())
    beginnings.push_back(preset.kind.empty()
                             ? fmt::format("{}:", preset.system)
                             : fmt::format("{}:kind={}", preset.system, preset.kind));
  return beginnings;
}

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "print the script that completes meshinfo in a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->type_name("SHELL")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "Examples:\n"
      "  source <(meshinfo completion bash)\n"
      "  meshinfo completion fish >~/.config/fish/completions/meshinfo.fish\n"
      "An installed meshinfo is completed without this command.");
  command->callback([&app, shell] {
    const CommandModel model = model_of(app);
    Output output{""};
    output.write(*shell == "bash"  ? bash_completion(model)
                 : *shell == "zsh" ? zsh_completion(model)
                                   : fish_completion(model));
    output.finish();
  });
}

}  // namespace meshinfo
