// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "completion.hpp"

namespace meshinfo {
namespace {

// bash also ends words at "=" and ":". Therefore the script reads the words from the command line
// itself. From the candidates, it removes the part that bash treats as earlier words.
constexpr const char* bash_begin =
    R"(# bash completion for meshinfo, written by: meshinfo completion bash
_meshinfo() {
  local line=${COMP_LINE:0:COMP_POINT} command=meshinfo options= values= is_value= word previous current
  local -a words=() candidates=()
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current=${words[-1]}
  previous=${words[-2]}
  if [[ $current == --*=* ]]; then
    previous=${current%%=*}
    current=${current#*=}
  fi
  for word in "${words[@]:1:${#words[@]}-2}"; do
    case "$command $word" in
)";
constexpr const char* bash_end = R"(  esac
  [[ ! $is_value && $current == -* ]] && values=$options
  case $values in
    files | folders | meshes) compopt -o filenames 2>/dev/null ;;&
    files) mapfile -t candidates < <(compgen -f -- "$current") ;;
    folders) mapfile -t candidates < <(compgen -d -- "$current") ;;
    meshes)
      mapfile -t candidates < <(
        compgen -W "$presets" -- "$current"
        compgen -f -X '!*.toml' -- "$current"
        compgen -d -- "$current"
      )
      [[ ${candidates[*]} == *: ]] && compopt -o nospace 2>/dev/null
      ;;
    *) mapfile -t candidates < <(compgen -W "$values" -- "$current") ;;
  esac
  word=${COMP_WORDS[COMP_CWORD]}
  [[ $word == [:=] ]] && word=
  COMPREPLY=("${candidates[@]#"${current%"$word"}"}")
}
complete -F _meshinfo meshinfo
)";

std::string bash_values(const OptionModel& option) {
  switch (completes(option)) {
    case Completes::choices:
      return fmt::format("{}", fmt::join(option.choices, " "));
    case Completes::files:
      return "files";
    case Completes::folders:
      return "folders";
    case Completes::meshes:
      return "meshes";
    case Completes::nothing:
      return "";
  }
  return "";
}

// The cases that find the command from its words.
void add_words(const CommandModel& command, std::string& text) {
  for (const CommandModel& below : command.commands) {
    text += fmt::format("      \"{} {}\") command='{}' ;;\n", command.name, below.last_name(),
                        below.name);
    add_words(below, text);
  }
}

// The case of a command, and the cases of the commands below it: its options, the possible
// arguments, and the values of its options.
void add_cases(const CommandModel& command, std::string& text) {
  std::vector<std::string> options, arguments = names_below(command);
  std::string cases;
  for (const OptionModel& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
    if (option.takes_value() && !option.is_value_optional)
      cases += fmt::format("        {}) values='{}' is_value=1 ;;\n",
                           fmt::join(option.names, " | "), bash_values(option));
  }
  for (const OptionModel& option : command.positionals)
    if (arguments.empty() && !bash_values(option).empty()) arguments.push_back(bash_values(option));
  text += fmt::format("    '{}')\n      options='{}' values='{}'\n", command.name,
                      fmt::join(options, " "), fmt::join(arguments, " "));
  if (!cases.empty()) text += fmt::format("      case $previous in\n{}      esac\n", cases);
  text += "      ;;\n";
  for (const CommandModel& below : command.commands) add_cases(below, text);
}

}  // namespace

std::string bash_completion(const CommandModel& app) {
  std::string text = bash_begin;
  add_words(app, text);
  text += fmt::format("    esac\n  done\n  local presets='{}'\n  case $command in\n",
                      fmt::join(preset_beginnings(), " "));
  add_cases(app, text);
  return text + bash_end;
}

}  // namespace meshinfo
