// SPDX-License-Identifier: BSD-3-Clause
// The completion of command lines in shells.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace meshinfo {

// Adds `meshinfo completion SHELL`, which prints a script that asks print_offers().
void add_completion(CLI::App& app);

// Prints what fits behind the words of a command line, of which the last one is not complete yet: a
// line with the paths that fit (files, folders, meshes or nothing), and a line for each word that
// fits, with its meaning behind a tabulator.
// @return the exit status.
int print_offers(const CLI::App& app, std::vector<std::string> words);

}  // namespace meshinfo
