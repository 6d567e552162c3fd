// SPDX-License-Identifier: BSD-3-Clause
#include "detail/communicators.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rankmesh::detail {
namespace {

// Returns whether a rule that is not a default rule gives calls of the group to MPI. Whoever writes
// such a rule wants MPI's own collectives.
bool is_routed_to_mpi(const GroupDescription& group, const RouteTable& routes) {
  return std::ranges::any_of(routes.rules(), [&](const RouteRule& rule) {
    if (rule.source == RouteSource::builtin || rule.transport != "mpi") return false;
    return std::ranges::any_of(group.names, [&](const std::string& name) {
      return rule.fits({.name = name.substr(0, name.find('[')),
                        .ranks = group.ranks.size(),
                        .nodes = group.nodes,
                        .own_cores = group.has_own_cores});
    });
  });
}

bool needs_communicator(const GroupDescription& group, const CommunicatorNeeds& needs,
                        std::int64_t most_slots) {
  const MeshOptions& options = needs.options;
  return !needs.shared.reaches(group) || needs.has_devices ||
         options.communicators == Communicators::all || !options.transports.empty() ||
         is_routed_to_mpi(group, needs.routes) || group.number > most_slots;
}

}  // namespace

GroupCommunicators make_communicators(const ConnectionPlan& plan, const mpi::CommunicatorView& mesh,
                                      const CommunicatorNeeds& needs) {
  static const std::int64_t most_slots = mpi::most_slots();
  GroupCommunicators result;
  for (const GroupDescription& group : plan.groups) {
    mpi::Communicator& owned = result.owned.emplace_back();
    if (group.ranks.size() == 1) {
      result.members.emplace_back(mpi::CommunicatorView{MPI_COMM_SELF});
      continue;
    }
    std::vector<int> ranks;
    int self = 0;
    for (const Rank rank : group.ranks) {
      if (rank.value() == mesh.rank()) self = static_cast<int>(ranks.size());
      ranks.push_back(static_cast<int>(rank.value()));
    }
    if (!needs_communicator(group, needs, most_slots)) {
      result.members.emplace_back(mesh, std::move(ranks), self, group.number);
      continue;
    }
    // Only the members take part. All ranks create their groups in the order of the plan.
    owned = mpi::create_group(mesh, ranks, group.creation_tag());
    result.members.emplace_back(owned.view());
  }
  return result;
}

}  // namespace rankmesh::detail
