// SPDX-License-Identifier: BSD-3-Clause
#include "command_model.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "arguments.hpp"
#include "output.hpp"
#include "rankmesh/spec/presets.hpp"

namespace rankmesh::meshinfo {
namespace {

// bash also ends words at "=" and ":". Therefore the script reads the words from the command line
// itself. From the candidates, it removes the part that bash treats as earlier words.
constexpr const char* bash_script =
    R"(# bash completion for meshinfo, written by: meshinfo completion bash
_meshinfo() {
  local line=${COMP_LINE:0:COMP_POINT} current paths word
  local -a words=() candidates=()
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current=${words[-1]}
  [[ $current == --*=* ]] && current=${current#*=}
  mapfile -t candidates < <(meshinfo complete "${words[@]:1}" 2>/dev/null)
  paths=${candidates[0]}
  candidates=("${candidates[@]:1}")
  candidates=("${candidates[@]%%$'\t'*}")
  [[ $paths ]] && compopt -o filenames 2>/dev/null
  [[ $paths == meshes && ${candidates[*]} == *: ]] && compopt -o nospace 2>/dev/null
  mapfile -t -O ${#candidates[@]} candidates < <(
    [[ $paths == files ]] && compgen -f -- "$current"
    [[ $paths == meshes ]] && compgen -f -X '!*.toml' -- "$current"
    [[ $paths == folders || $paths == meshes ]] && compgen -d -- "$current"
  )
  word=${COMP_WORDS[COMP_CWORD]}
  [[ $word == [:=] ]] && word=
  COMPREPLY=("${candidates[@]#"${current%"$word"}"}")
}
complete -F _meshinfo meshinfo
)";

constexpr const char* fish_script =
    R"(# fish completion for meshinfo, written by: meshinfo completion fish
function __meshinfo_offers
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l head (string match -r -- '^--[^=]*=' "$current")
  set -l offers (meshinfo complete $words[2..] "$current" 2>/dev/null)
  switch "$offers[1]"
    case files
      __fish_complete_path "$current"
    case folders
      __fish_complete_directories "$current"
    case meshes
      __fish_complete_suffix .toml
  end
  for offer in $offers[2..]
    echo "$head$offer"
  end
end
complete -c meshinfo -f -a '(__meshinfo_offers)'
)";

constexpr const char* zsh_script = R"(#compdef meshinfo
# zsh completion for meshinfo, written by: meshinfo completion zsh
_meshinfo() {
  local -a offers
  offers=("${(@f)$(meshinfo complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  local paths=$offers[1]
  offers=("${(@)offers[2,-1]}")
  [[ $PREFIX == --*=* ]] && compset -P '*='
  case $paths in
    files) _files ;;
    folders) _files -/ ;;
    meshes) _files -g '*.toml'; compadd -S '' -a offers ;;
    *)
      offers=("${(@)offers//:/\\:}")
      offers=("${(@)offers/$'\t'/:}")
      _describe meshinfo offers
      ;;
  esac
}
[[ $funcstack[1] == _meshinfo ]] && _meshinfo "$@" || compdef _meshinfo meshinfo
)";

// What a shell offers in one place: words with their meanings, and paths.
struct Offers {
  std::string_view paths{};  // files, folders, meshes (folders and *.toml), or nothing
  std::vector<std::pair<std::string, std::string>> words{};

  [[nodiscard]] bool is_empty() const { return paths.empty() && words.empty(); }
};

Offers values_of(const OptionModel& option) {
  Offers offers;
  for (const std::string& choice : option.choices) offers.words.emplace_back(choice, "");
  if (!option.choices.empty()) return offers;
  if (option.value == "FILE") offers.paths = "files";
  if (option.value == "FOLDER") offers.paths = "folders";
  if (option.value != "MESH") return offers;
  offers.paths = "meshes";
  for (const PresetInfo& preset : preset_catalogue())
    offers.words.emplace_back(
        fmt::format("{}:{}{}", preset.system, preset.kind.empty() ? "" : "kind=", preset.kind), "");
  return offers;
}

// @param previous  the word before the current one.
Offers offers_of(const CommandModel& command, const std::string& previous,
                 const std::string& current) {
  for (const OptionModel& option : command.options)
    if (option.takes_value() && !option.is_value_optional &&
        std::ranges::find(option.names, previous) != option.names.end())
      return values_of(option);
  Offers offers;
  if (current.starts_with('-')) {
    for (const OptionModel& option : command.options)
      for (const std::string& name : option.names)
        offers.words.emplace_back(name, option.description);
    return offers;
  }
  for (const CommandModel& below : command.commands)
    offers.words.emplace_back(below.last_name(), below.summary);
  for (const OptionModel& option : command.positionals)
    if (offers.is_empty()) offers = values_of(option);
  return offers;
}

}  // namespace

int print_offers(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  const CommandModel model = model_of(app);
  const CommandModel* command = &model;
  for (std::size_t w = 0; w + 1 < words.size(); ++w) {
    const auto below = std::ranges::find(command->commands, words[w], &CommandModel::last_name);
    if (below != command->commands.end()) command = &*below;
  }
  std::string current = words.back();
  std::string previous = words.size() > 1 ? words[words.size() - 2] : "";
  if (const auto equals = current.find('='); equals != current.npos && current.starts_with("--")) {
    previous = current.substr(0, equals);
    current.erase(0, equals + 1);
  }
  const Offers offers = offers_of(*command, previous, current);
  std::string text = fmt::format("{}\n", offers.paths);
  for (const auto& [word, meaning] : offers.words)
    if (word.starts_with(current))
      text += fmt::format("{}{}{}\n", word, meaning.empty() ? "" : "\t", meaning);
  write_file("", text);
  return 0;
}

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "print the script that completes meshinfo in a shell");
  add_word(*command, "SHELL", *shell, "SHELL", "bash, zsh or fish", {"bash", "zsh", "fish"})
      ->required();
  command->footer(
      "Examples:\n"
      "  source <(meshinfo completion bash)\n"
      "  meshinfo completion fish >~/.config/fish/completions/meshinfo.fish\n"
      "An installed meshinfo is completed without this command.");
  command->callback([shell] {
    write_file("", *shell == "bash" ? bash_script : *shell == "zsh" ? zsh_script : fish_script);
  });
}

}  // namespace rankmesh::meshinfo
