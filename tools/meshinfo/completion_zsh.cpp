// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "completion.hpp"

namespace meshinfo {
namespace {

// A text within '...' and within [...] of an argument of _arguments.
std::string zsh_quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'')
      result += "'\\'";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionModel& option) {
  switch (completes(option)) {
    case Completes::choices:
      return fmt::format("({})", fmt::join(option.choices, " "));
    case Completes::files:
      return "_files";
    case Completes::folders:
      return "_files -/";
    case Completes::meshes:
      return "_meshinfo_meshes";
    case Completes::nothing:
      return " ";
  }
  return " ";
}

// "(-o --output)"{-o,--output}"[...]:FILE:_files": one name excludes the others.
std::string zsh_spec(const OptionModel& option) {
  std::string names = option.names.front();
  if (option.names.size() > 1)
    names = fmt::format("({})'{{{}}}'", fmt::join(option.names, " "), fmt::join(option.names, ","));
  std::string value;
  if (option.takes_value())
    value = fmt::format("{}{}:{}", option.is_value_optional ? "::" : ":", zsh_quoted(option.value),
                        zsh_action(option));
  return fmt::format("    '{}{}[{}]{}' \\\n", option.is_repeatable ? "*" : "", names,
                     zsh_quoted(option.description), value);
}

std::string function_of(const CommandModel& command) {
  std::string name = "_" + command.name;
  for (char& c : name)
    if (c == ' ' || c == '-') c = '_';
  return name;
}

void add_functions(const CommandModel& command, std::string& text) {
  for (const CommandModel& below : command.commands) add_functions(below, text);
  text += fmt::format("{}() {{\n", function_of(command));
  if (!command.commands.empty()) {
    text += "  local -a commands=(\n";
    for (const CommandModel& below : command.commands)
      text += fmt::format("    '{}:{}'\n", below.last_name(), zsh_quoted(below.summary));
    text += "  )\n  local context state state_descr line\n  typeset -A opt_args\n";
  }
  text += "  _arguments -S -s \\\n";
  for (const OptionModel& option : command.options) text += zsh_spec(option);
  if (command.commands.empty()) {
    for (const OptionModel& option : command.positionals)
      text += fmt::format("    '{}:{}:{}' \\\n", option.is_repeatable ? "*" : "",
                          zsh_quoted(option.names.front()), zsh_action(option));
    text += "    && return\n}\n\n";
    return;
  }
  text += "    '1:command:->command' '*::argument:->argument' && return\n  case $state in\n";
  text += "    command) _describe command commands ;;\n    argument)\n      case $words[1] in\n";
  for (const CommandModel& below : command.commands)
    text += fmt::format("        {}) {} ;;\n", below.last_name(), function_of(below));
  text += "      esac\n      ;;\n  esac\n}\n\n";
}

}  // namespace

std::string zsh_completion(const CommandModel& app) {
  std::string text = fmt::format(
      "#compdef meshinfo\n# zsh completion for meshinfo, written by: meshinfo completion zsh\n\n"
      "_meshinfo_meshes() {{\n  local -a presets=({})\n  _files -g '*.toml'\n"
      "  compadd -S '' -a presets\n}}\n\n",
      fmt::join(preset_beginnings(), " "));
  add_functions(app, text);
  return text +
         "[[ $funcstack[1] == _meshinfo ]] && _meshinfo \"$@\" || compdef _meshinfo meshinfo\n";
}

}  // namespace meshinfo
