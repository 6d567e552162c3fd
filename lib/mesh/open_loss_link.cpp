// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_loss_link.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "wait/detail/values_of_all.hpp"

namespace rankmesh::detail {
namespace {

// A datagram has 65,507 bytes at most. In a decision it holds three sets with a bit for each rank,
// and 16 bytes for each rank of a node.
constexpr int most_ranks = 1 << 17;

// Returns who goes on after these losses. If no mesh remains, all survivors learn it together.
LossAgreement::Staying staying_after(const MeshPlan& plan, ShrinkPolicy policy,
                                     const LossAgreement::Members& lost) {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < lost.size(); ++rank)
    if (lost[rank]) ranks.emplace_back(static_cast<std::int64_t>(rank));
  LossAgreement::Staying stay{.all = lost, .spare = LossAgreement::Members(lost.size())};
  stay.all.flip();
  const Shrunk shrunk = remains_of(plan, policy, ranks, std::ssize(lost) - plan.world_size());
  if (!shrunk.plan) return stay;
  for (std::size_t rank = 0; rank < lost.size(); ++rank)
    stay.all[rank] = shrunk.new_rank[rank] >= 0;
  if (policy == ShrinkPolicy::spare)
    for (const std::int64_t idle : shrunk.idle)
      stay.all[static_cast<std::size_t>(idle)] = stay.spare[static_cast<std::size_t>(idle)] = true;
  return stay;
}

}  // namespace

Shrunk remains_of(const MeshPlan& plan, ShrinkPolicy policy, std::span<const Rank> lost,
                  std::int64_t spares) {
  const auto is_lost_spare = [&](Rank rank) { return rank.value() >= plan.world_size(); };
  const std::int64_t lost_spares = std::ranges::count_if(lost, is_lost_spare);
  const std::int64_t lost_members = std::ssize(lost) - lost_spares;
  // Spare ranks have nothing of the mesh, so they do not go on alone.
  if (policy == ShrinkPolicy::spare &&
      (spares - lost_spares < lost_members || lost_members == plan.world_size()))
    return {};
  return shrink(plan, lost, policy, spares);
}

std::int64_t exclude_after_of(const Survival& survival) {
  const Deadline::Duration none{0};
  return static_cast<std::int64_t>(survival.exclude_after.value_or(none).count() * 1e9);
}

std::unique_ptr<LossLink> open_loss_link(ControlPlane& control, const Survival& survival,
                                         const std::string& description,
                                         const std::shared_ptr<const MeshPlan>& plan) {
  if (control.comm().size() > most_ranks)
    throw UnsupportedError{
        fmt::format("the mesh {} has {} ranks, and at most {} ranks can survive lost ranks",
                    description, control.comm().size(), most_ranks),
        "open several meshes, or leave MeshOptions::survive empty"};
  std::shared_ptr<LossPort> port;
  LossAddress own;
  try {
    port = LossPort::of_process();
    own = port->address();
  } catch (const std::system_error& error) {
    control.log(LogLevel::warning,
                fmt::format("no socket for messages about losses: {}", error.what()));
  }
  LossLink::LinkFacts facts{
      .key = control.key_of_mesh,
      .self = static_cast<std::uint32_t>(control.rank().value()),
      .addresses = values_of_all(control.all(), own, "the exchange of network addresses"),
      .silence = survival.silence.count(),
      .exclude_after = exclude_after_of(survival)};
  const auto deaf = std::ranges::find_if(
      facts.addresses, [](const LossAddress& one) { return one.port == 0 || one.hosts[0] == 0; });
  if (deaf != facts.addresses.end())
    throw UnsupportedError{
        fmt::format(
            "the mesh {} may not survive lost ranks, because rank {} has no network address",
            description, control.names(Rank{deaf - facts.addresses.begin()})),
        "the nodes need a network with IPv4; or leave MeshOptions::survive empty"};
  for (std::size_t rank = 0; rank < facts.addresses.size(); ++rank)
    facts.node_of_rank.push_back(control.placement.node(Rank{static_cast<std::int64_t>(rank)}));
  return std::make_unique<LossLink>(
      std::move(port), control.shared_board(), std::move(facts),
      [plan, policy = survival.policy](const LossAgreement::Members& lost) {
        return staying_after(*plan, policy, lost);
      });
}

}  // namespace rankmesh::detail
