// SPDX-License-Identifier: BSD-3-Clause
// Messages for command lines that cannot be read.
#pragma once

#include <CLI/CLI.hpp>

#include "rankmesh/base/error.hpp"

namespace meshinfo {

rankmesh::UsageError no_command(const CLI::App& app);

// Explains why the command line was refused, and suggests commands, options and values that are
// spelt similarly.
rankmesh::UsageError wrong_usage_of(const CLI::App& app, const CLI::ParseError& error);

}  // namespace meshinfo
