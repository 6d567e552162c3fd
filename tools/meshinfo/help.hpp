// SPDX-License-Identifier: BSD-3-Clause
// The help of a command, as --help and meshinfo help print it.
#pragma once

#include <CLI/CLI.hpp>

#include "command_model.hpp"
#include "report/document.hpp"

namespace meshinfo {

// Adds `meshinfo help [COMMAND]...`.
void add_help(CLI::App& app);

rankmesh::report::Document help_of(const CommandModel& command);

// Thrown by `meshinfo help`.
struct HelpCall {
  const CLI::App* command;
};

// Returns the command whose --help was given: the last one on the command line.
const CLI::App& command_of_call(const CLI::App& app);

}  // namespace meshinfo
