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
      return rule.fits({.name = group.name_in_routes(name),
                        .ranks = group.ranks.size(),
                        .nodes = group.nodes,
                        .own_cores = group.has_own_cores});
    });
  });
}

}  // namespace

bool needs_communicator(const GroupDescription& group, const CommunicatorNeeds& needs) {
  const MeshOptions& options = needs.options;
  return !needs.shared.reaches(group) || needs.has_devices ||
         options.communicators == Communicators::all || !options.transports.empty() ||
         is_routed_to_mpi(group, needs.routes);
}

GroupCommunicator make_communicator(const GroupDescription& group,
                                    const mpi::CommunicatorView& mesh, bool is_needed) {
  static const std::int64_t most_slots = mpi::most_slots();
  if (group.ranks.size() == 1) return {{}, mpi::CommunicatorView{MPI_COMM_SELF}};
  if (is_needed || group.number > most_slots) {
    mpi::Communicator owned = create_communicator(group, mesh);
    const mpi::CommunicatorView view = owned.view();
    return {std::move(owned), view};
  }
  const auto self = static_cast<int>(group.ranks.index_of(mesh.rank())->value());
  return {{}, {mesh, group.ranks_of_mesh(), self, group.number}};
}

std::vector<GroupCommunicator> make_communicators(const ConnectionPlan& plan,
                                                  const mpi::CommunicatorView& mesh,
                                                  const CommunicatorNeeds& needs) {
  std::vector<GroupCommunicator> result;
  for (const GroupDescription& group : plan.groups)
    result.push_back(make_communicator(group, mesh, needs_communicator(group, needs)));
  return result;
}

}  // namespace rankmesh::detail
