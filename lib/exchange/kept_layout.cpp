// SPDX-License-Identifier: BSD-3-Clause
#include "detail/kept_layout.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/layout/role.hpp"

namespace rankmesh::exchange::detail {
namespace {

using rankmesh::detail::FailureDomains;
using rankmesh::detail::GroupAccess;

// The coordinates of a rank along the dimensions that count replicas, as one number.
std::int64_t replica_of(const MeshPlan& plan, Rank rank) {
  std::int64_t replica = 0;
  const Layout& view = plan.views().front();
  for (std::size_t d = 0; d < view.dimensions().size(); ++d)
    if (role_of(view.dimensions()[d].name) == FamilyRole::data)
      replica = replica * view.dimensions()[d].size + view.coordinate(rank, d).value_or(0).value();
  return replica;
}

FailureDomains domains_of(const GroupCoordinator& group) {
  const auto& control = *GroupAccess::runtime(group).control;
  const MeshPlan* const plan = control.names.plan();
  const bool has_views = plan != nullptr && !plan->views().empty();
  FailureDomains domains;
  for (const Rank rank : group.ranks().to_vector()) {
    domains.replicas.push_back(has_views ? replica_of(*plan, rank) : 0);
    domains.nodes.push_back(control.placement.node(rank));
  }
  return domains;
}

TensorPlacement moved(const TensorPlacement& place, std::int64_t distance, std::int64_t members) {
  return rankmesh::detail::renumbered(
      place, [&](std::int64_t rank) { return (rank + distance) % members; });
}

}  // namespace

KeptLayout::KeptLayout(std::int64_t mesh, RankSet members, std::int64_t distance_of_copies,
                       std::vector<KeptTensor> list)
    : ranks{std::move(members)}, distance{distance_of_copies}, tensors{std::move(list)} {
  text = fmt::format("{} {} {}\n", mesh, distance, ranks.to_string());
  for (const KeptTensor& tensor : tensors)
    text += fmt::format("{} {} {}{}\n", tensor.copy ? 1 : 0, tensor.name.size(), tensor.name,
                        tensor.place.to_string());
  hash = hash_bytes(text);
  for (std::size_t t = 0; t < tensors.size(); ++t) by_name_.emplace(tensors[t].name, t);
}

std::shared_ptr<const KeptLayout> KeptLayout::parse(const std::string& text) {
  std::istringstream in{text};
  std::int64_t mesh = 0, distance_of_copies = 0;
  std::string members;
  std::getline(in >> mesh >> distance_of_copies >> std::ws, members);
  RankSet ranks = RankSet::parse(members);
  std::vector<KeptTensor> tensors;
  OncePerPlace parsed, copies;
  bool is_copied = false;
  for (std::size_t length = 0; in >> is_copied >> length;) {
    std::string name(length, '\0'), place;
    in.ignore().read(name.data(), static_cast<std::streamsize>(length));
    std::getline(in, place);
    tensors.push_back(
        {std::move(name), parsed.of(place, [&] { return TensorPlacement::parse(place); })});
    if (is_copied)
      tensors.back().copy = copies.of(
          place, [&] { return moved(tensors.back().place, distance_of_copies, ranks.size()); });
  }
  return std::make_shared<const KeptLayout>(mesh, std::move(ranks), distance_of_copies,
                                            std::move(tensors));
}

const KeptTensor* KeptLayout::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors[found->second];
}

std::shared_ptr<const KeptLayout> layout_of(const GroupCoordinator& group,
                                            std::vector<KeptTensor> tensors) {
  const FailureDomains domains = domains_of(group);
  const std::int64_t distance = rankmesh::detail::distance_of_copies(domains);
  OncePerPlace copies;  // of a place that needs none, itself
  for (KeptTensor& tensor : tensors) {
    const TensorPlacement& copy = copies.of(tensor.place.to_string(), [&] {
      return rankmesh::detail::needs_copies(tensor.place, domains)
                 ? moved(tensor.place, distance, group.size())
                 : tensor.place;
    });
    if (copy != tensor.place) tensor.copy = copy;
  }
  return std::make_shared<const KeptLayout>(
      static_cast<std::int64_t>(GroupAccess::runtime(group).control->key_of_mesh), group.ranks(),
      distance, std::move(tensors));
}

}  // namespace rankmesh::exchange::detail
