// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the TOML form and its mesh string.
#include "check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::check_input({reinterpret_cast<const char*>(data), size}, [](std::string_view text) {
    return rankmesh::MeshSpec::parse_toml(text, "mesh.toml");
  });
  return 0;
}
