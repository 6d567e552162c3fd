// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/global_norm.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

// The members of the rank's group in a family; none if it has no group there. A name that the plan
// does not have stands for all ranks, or for all ranks of a grid.
std::vector<Rank> members_of(Mesh& mesh, const std::string& name, Rank rank) {
  const auto& families = mesh.plan().families();
  const auto family = std::ranges::find(families, name, &GroupFamily::name);
  if (family != families.end()) {
    const auto index = family->find(rank);
    if (!index) return {};
    const RankSet group = family->group(index->group);
    return {group.begin(), group.end()};
  }
  const RankSet& world = mesh[name].ranks();
  return {world.begin(), world.end()};
}

[[noreturn]] void throw_overlap(const std::string& family) {
  throw UsageError{
      fmt::format("GlobalNorm: '{}' has ranks in common with the families before it", family),
      "name each dimension once, alone or in a product: the values of these ranks would count "
      "several times"};
}

// The ranks over which result() sums. For each family, every rank of the list is replaced by its
// group.
std::vector<Rank> summed_ranks(Mesh& mesh, const FamilyNames& families) {
  std::vector<Rank> summed{mesh.rank()};
  for (std::size_t k = 0; k < families.list().size(); ++k) {
    const std::string& name = families.list()[k];
    if (std::ranges::count(families.list(), name) > 1) throw_overlap(name);
    std::vector<Rank> grown;
    for (const Rank rank : summed) {
      const std::vector<Rank> group = members_of(mesh, name, rank);
      if (group.empty()) grown.push_back(rank);
      grown.insert(grown.end(), group.begin(), group.end());
    }
    std::ranges::sort(grown);
    if (std::ranges::adjacent_find(grown) != grown.end()) throw_overlap(name);
    summed = std::move(grown);
  }
  return summed;
}

}  // namespace

GlobalNorm::GlobalNorm(Mesh& mesh, const FamilyNames& divided_over)
    : mesh_{mesh},
      groups_{divided_over.groups_of(mesh)},
      summed_{summed_ranks(mesh, divided_over)} {}

bool GlobalNorm::counts_here(const FamilyNames& replicated_over) const {
  const auto is_summed = [&](Rank rank) { return std::ranges::binary_search(summed_, rank); };
  return std::ranges::all_of(replicated_over.groups_of(mesh_), [&](const GroupCoordinator* group) {
    return *std::ranges::find_if(group->ranks(), is_summed) == mesh_.rank();
  });
}

double GlobalNorm::result() {
  double sum = std::exchange(sum_, 0.0);
  for (GroupCoordinator* group : groups_) group->all_reduce(sum);
  return std::sqrt(sum);
}

}  // namespace rankmesh
