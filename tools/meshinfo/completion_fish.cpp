// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "completion.hpp"

namespace meshinfo {
namespace {

std::string fish_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

// The condition under which a command's options are offered: its words are on the line, and those
// of the commands below it are not.
std::string condition_of(const CommandModel& command) {
  std::vector<std::string> parts;
  const std::vector<std::string> words = CLI::detail::split(command.name, ' ');
  for (std::size_t i = 1; i < words.size(); ++i)
    parts.push_back(fmt::format("__fish_seen_subcommand_from {}", words[i]));
  const std::vector<std::string> below = names_below(command);
  if (!below.empty())
    parts.push_back(fmt::format("not __fish_seen_subcommand_from {}", fmt::join(below, " ")));
  // The word "rank" is a command, and a command of explain.
  if (words.size() == 2 && command.commands.empty())
    parts.push_back("not __fish_seen_subcommand_from explain");
  return fish_quoted(fmt::format("{}", fmt::join(parts, "; and ")));
}

std::string fish_value(const OptionModel& option) {
  switch (completes(option)) {
    case Completes::choices:
      return fmt::format("-xa {}", fish_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case Completes::files:
      return "-rF";
    case Completes::folders:
      return "-xa '(__fish_complete_directories)'";
    case Completes::meshes:
      return "-xa '(__fish_complete_suffix .toml) $__meshinfo_presets'";
    case Completes::nothing:
      return "-x";
  }
  return "";
}

void add_fish_lines(const CommandModel& command, std::string& text) {
  const std::string begin = "complete -c meshinfo -n " + condition_of(command);
  for (const CommandModel& below : command.commands)
    text += fmt::format("{} -a {} -d {}\n", begin, below.last_name(), fish_quoted(below.summary));
  for (const OptionModel& option : command.positionals)
    if (completes(option) != Completes::nothing && command.commands.empty())
      text +=
          fmt::format("{} {} -d {}\n", begin, fish_value(option), fish_quoted(option.description));
  for (const OptionModel& option : command.options) {
    text += begin;
    for (const std::string& name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes_value() && !option.is_value_optional) text += " " + fish_value(option);
    text += fmt::format(" -d {}\n", fish_quoted(option.description));
  }
  for (const CommandModel& below : command.commands) add_fish_lines(below, text);
}

}  // namespace

std::string fish_completion(const CommandModel& app) {
  std::string text = fmt::format(
      "# fish completion for meshinfo, written by: meshinfo completion fish\n"
      "complete -c meshinfo -f\nset -g __meshinfo_presets {}\n",
      fmt::join(preset_beginnings(), " "));
  add_fish_lines(app, text);
  return text;
}

}  // namespace meshinfo
