// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes `system:key=value,...`, also with products.
#include "check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  if (input.find(':') != std::string_view::npos)
    fuzz::check_input(input, rankmesh::MeshSpec::parse_string);
  return 0;
}
