// SPDX-License-Identifier: BSD-3-Clause
// The options of a family in a mesh file: one key per field of GroupOptions.
#pragma once

#include <string>

#include "rankmesh/layout/group_options.hpp"
#include "toml_reader.hpp"

namespace rankmesh::detail {

/// Reads the options. MeshPlan::set_options() checks their values.
GroupOptions read_options(const TomlReader& table);

}  // namespace rankmesh::detail
