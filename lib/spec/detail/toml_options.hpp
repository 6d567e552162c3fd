// The options of one name in a mesh file: a key per field of GroupOptions.
#pragma once

#include <string>

#include "rankmesh/layout/group_options.hpp"
#include "toml_reader.hpp"

namespace rankmesh::detail {

/// What the options mean for a mesh is checked by MeshPlan::set_options().
GroupOptions read_options(const TomlReader& table);

/// A line per field that differs from the default.
std::string options_as_toml(const GroupOptions& options);

/// The text as a TOML string, quotes included.
std::string quoted(std::string_view text);

}  // namespace rankmesh::detail
