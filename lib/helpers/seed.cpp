// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/seed.hpp"

#include <set>

#include <fmt/format.h>

#include "rankmesh/base/hash.hpp"

namespace rankmesh {

std::uint64_t seed(const Mesh& mesh, std::uint64_t number, const FamilyNames& different_over) {
  const auto& names = different_over.list();
  std::string text = fmt::format("rankmesh.seed/1 {}", number);
  for (const std::string& name : std::set<std::string>{names.begin(), names.end()})
    text += fmt::format(" {}={}", name, mesh.coordinate(name).value());
  return hash_bytes(text).low;
}

}  // namespace rankmesh
