// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/global_norm.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rankmesh {

GlobalNorm::GlobalNorm(Mesh& mesh, const FamilyNames& divided_over)
    : mesh_{mesh}, groups_{divided_over.groups_of(mesh)} {}

bool GlobalNorm::counts_here(const FamilyNames& replicated_over) const {
  return std::ranges::all_of(replicated_over.groups_of(mesh_),
                             [](const GroupCoordinator* group) { return group->is_first(); });
}

double GlobalNorm::result() {
  double sum = std::exchange(sum_, 0.0);
  for (GroupCoordinator* group : groups_) group->all_reduce(sum);
  return std::sqrt(sum);
}

}  // namespace rankmesh
