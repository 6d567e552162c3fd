// SPDX-License-Identifier: BSD-3-Clause
// What happens when the user or the launcher ends meshinfo by a signal.
#pragma once

#include <string>

namespace meshinfo {

// Removes this file if SIGINT, SIGTERM or SIGHUP ends the process. An empty path: no file. There is
// at most one such file at a time.
void remove_if_interrupted(const std::string& path);

// Clears the line of the terminal that shows progress if a signal ends the process.
void clear_line_if_interrupted(bool clears);

}  // namespace meshinfo
