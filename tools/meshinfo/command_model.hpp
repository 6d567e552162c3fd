// SPDX-License-Identifier: BSD-3-Clause
// What meshinfo's commands accept, as values. The help, the manual pages, the completions and the
// suggestions are all made from it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace meshinfo {

struct OptionModel {
  std::vector<std::string> names;    // "-o", "--output"; the name alone of a positional argument
  std::string value;                 // what to write after the name, such as FILE; empty for flags
  std::vector<std::string> choices;  // all values, or the usual ones; may be empty
  std::string description;
  bool is_required = false;
  bool is_value_optional = false;
  bool is_repeatable = false;

  [[nodiscard]] bool takes_value() const { return !value.empty(); }
};

struct CommandModel {
  std::string name;  // with the names of its parents: "meshinfo explain rank"
  std::string summary;
  std::string notes;  // sections: "Examples:", followed by indented lines or paragraphs
  std::vector<OptionModel> positionals;
  std::vector<OptionModel> options;
  std::vector<CommandModel> commands;

  // Returns the name without those of its parents.
  [[nodiscard]] std::string last_name() const;
};

// Describes a command with everything below it. Commands and options of the empty group are hidden.
CommandModel model_of(const CLI::App& app);

// Returns the names of the commands below, without those of their parents.
std::vector<std::string> names_below(const CommandModel& command);

// Lets completions offer the values. They are not checked, because the command reads them itself.
void offer(CLI::Option& option, const std::vector<std::string>& values);

// Returns the usage of a command in one line, without its name: "[OPTION]... MESH".
std::string arguments_of(const CommandModel& command);
// Returns the names of an option and its value: "-o, --output FILE".
std::string title_of(const OptionModel& option);

}  // namespace meshinfo
