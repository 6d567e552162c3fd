// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/prefix.hpp"

#include <fmt/format.h>

namespace rankmesh {

std::string prefix(const Mesh& mesh) {
  const std::size_t width = std::to_string(mesh.size() - 1).size();
  return fmt::format("[{:>{}} {}] ", mesh.rank().value(), width, mesh.plan().describe(mesh.rank()));
}

std::string prefixed(const Mesh& mesh, std::string_view text) {
  const std::string before = prefix(mesh);
  std::string result = before;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += before;
  }
  return result;
}

}  // namespace rankmesh
