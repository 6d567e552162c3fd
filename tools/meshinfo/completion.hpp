// SPDX-License-Identifier: BSD-3-Clause
// Completion scripts for shells.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "command_model.hpp"

namespace meshinfo {

// Adds `meshinfo completion SHELL`.
void add_completion(CLI::App& app);

// Each returns a script that completes the commands, options and values of the model.
std::string bash_completion(const CommandModel& app);
std::string zsh_completion(const CommandModel& app);
std::string fish_completion(const CommandModel& app);

// What a shell completes in the place of a value.
enum class Completes { nothing, choices, files, folders, meshes };
Completes completes(const OptionModel& option);

// Returns the beginnings of mesh strings with a preset: "megatron:", "deepspeed:kind=grid", ...
std::vector<std::string> preset_beginnings();

}  // namespace meshinfo
