// SPDX-License-Identifier: BSD-3-Clause
// Reads a mesh file that is a text in a test.
#pragma once

#include <string>

#include "rankmesh/spec/mesh_spec.hpp"

inline rankmesh::MeshSpec spec_of(const std::string& text) {
  return rankmesh::MeshSpec::parse_toml(text, "x.toml");
}
