// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/detail/read_file.hpp"

#include <fstream>
#include <ios>
#include <iterator>

namespace rankmesh::detail {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file.is_open()) return std::nullopt;
  try {
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    if (file.bad()) return std::nullopt;
    return text;
  } catch (const std::ios_base::failure&) {  // a directory
    return std::nullopt;
  }
}

}  // namespace rankmesh::detail
