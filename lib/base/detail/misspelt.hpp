// SPDX-License-Identifier: BSD-3-Clause
// Environment variables whose names are probably misspelt.
#pragma once

#include <string>
#include <string_view>

namespace rankmesh::detail {

/// Returns the name of a setting that a name like RANKMESH_DEADLNE probably means; empty if it is a
/// setting itself, or is like none. Scripts may have variables of their own.
[[nodiscard]] std::string meant_setting(std::string_view name);

}  // namespace rankmesh::detail
