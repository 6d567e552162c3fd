// SPDX-License-Identifier: BSD-3-Clause
// Reads a whole file.
#pragma once

#include <optional>
#include <string>

#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// Returns the bytes of a file, or nothing if it cannot be read, for example because it is a
/// directory. The reason is then in `errno`. The caller throws an error that says what the file is
/// for.
RANKMESH_API std::optional<std::string> read_file(const std::string& path);

}  // namespace rankmesh::detail
