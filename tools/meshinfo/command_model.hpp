// SPDX-License-Identifier: BSD-3-Clause
// What meshinfo's commands accept, as values, and what is made from it: the help, the manual pages,
// the completions and the suggestions.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "rankmesh/base/error.hpp"
#include "report/document.hpp"

namespace rankmesh::meshinfo {

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

// Adds `meshinfo help [COMMAND]...`.
void add_help(CLI::App& app);

report::Document help_of(const CommandModel& command);

// Thrown by `meshinfo help`.
struct HelpCall {
  const CLI::App* command;
};

// Returns the command whose --help was given: the last one on the command line.
const CLI::App& command_of_call(const CLI::App& app);

// Adds the hidden command that writes the manual pages into a folder.
void add_manual_pages(CLI::App& app);

// Adds `meshinfo completion SHELL`, which prints a script that asks print_offers().
void add_completion(CLI::App& app);

// Prints what fits behind the words of a command line, of which the last one is not complete yet: a
// line with the paths that fit (files, folders, meshes or nothing), and a line for each word that
// fits, with its meaning behind a tabulator.
// @return the exit status.
int print_offers(const CLI::App& app, std::vector<std::string> words);

UsageError no_command(const CLI::App& app);

// Explains why the command line was refused, and suggests commands, options and values that are
// spelt similarly.
UsageError wrong_usage_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace rankmesh::meshinfo
