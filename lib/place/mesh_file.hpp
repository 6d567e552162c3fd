// SPDX-License-Identifier: BSD-3-Clause
// Writes mesh files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

/// Returns the canonical TOML form of a description. Parsing this text (MeshSpec::parse_toml())
/// gives the same description.
/// @param world_size  the `world_size` of the file, for descriptions that do not state it.
std::string to_toml(const MeshSpec& spec, std::optional<std::int64_t> world_size = std::nullopt);

}  // namespace rankmesh
