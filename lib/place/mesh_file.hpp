// SPDX-License-Identifier: BSD-3-Clause
// Writes mesh files.
#pragma once

#include <string>

#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

/// Returns the canonical TOML form of a description. Parsing this text (MeshSpec::parse_toml())
/// gives the same description.
std::string to_toml(const MeshSpec& spec);

}  // namespace rankmesh
