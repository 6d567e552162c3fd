// SPDX-License-Identifier: BSD-3-Clause
// The terminal that the user looks at, if there is one.
#pragma once

#include <cstddef>
#include <optional>

namespace meshinfo {

// The standard streams of the user.
enum class Stream { output = 1, error = 2 };

// Returns the columns of the terminal that shows the stream; nothing if it goes elsewhere. A
// launcher gives its ranks pipes or terminals of their own. Therefore, in a job, the function uses
// the streams of the launcher, which only processes on the launcher's node can see.
std::optional<std::size_t> terminal_columns(Stream stream);

}  // namespace meshinfo
