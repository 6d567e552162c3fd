// SPDX-License-Identifier: BSD-3-Clause
// Manual pages, written when rankmesh is built.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "command_model.hpp"

namespace meshinfo {

// Adds the hidden command that writes the manual pages into a folder.
void add_manual_pages(CLI::App& app);

// Returns the page of a command, for man(1) in section 1.
std::string manual_page(const CommandModel& command);

}  // namespace meshinfo
