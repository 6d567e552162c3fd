// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_loss_link.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/layout/shrink.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::detail {
namespace {

std::vector<LossAddress> gather_addresses(ControlPlane& control, const LossAddress& own) {
  struct Exchange {
    LossAddress own;
    std::vector<LossAddress> all;
  };
  MpiMemory<Exchange> exchange;
  exchange->own = own;
  exchange->all.resize(static_cast<std::size_t>(control.comm().size()));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Iallgather(&exchange->own, sizeof(LossAddress), MPI_BYTE, exchange->all.data(),
                            sizeof(LossAddress), MPI_BYTE, control.comm().native(), &request),
             "MPI_Iallgather");
  exchange.wait(request, control.monitor,
                WaitPoint::of_all(control.comm().size(), "the exchange of network addresses"),
                control.deadline());
  return std::move(exchange->all);
}

// Returns who goes on after these losses. If no mesh remains, all survivors learn it together.
LossAgreement::Members members_after(const MeshPlan& plan, ShrinkPolicy policy,
                                     const LossAgreement::Members& lost) {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < lost.size(); ++rank)
    if (lost[rank]) ranks.emplace_back(static_cast<std::int64_t>(rank));
  LossAgreement::Members stay = lost;
  stay.flip();
  const Shrunk shrunk = shrink(plan, ranks, policy);
  if (shrunk.plan)
    for (std::size_t rank = 0; rank < lost.size(); ++rank) stay[rank] = shrunk.new_rank[rank] >= 0;
  return stay;
}

}  // namespace

std::int64_t exclude_after_of(const Survival& survival) {
  const Deadline::Duration none{0};
  return static_cast<std::int64_t>(survival.exclude_after.value_or(none).count() * 1e9);
}

std::unique_ptr<LossLink> open_loss_link(ControlPlane& control, const Survival& survival,
                                         const std::string& description,
                                         const std::shared_ptr<const MeshPlan>& plan) {
  std::shared_ptr<LossPort> port;
  LossAddress own;
  try {
    port = LossPort::of_process();
    own = port->address();
  } catch (const std::system_error& error) {
    control.log(LogLevel::warning,
                fmt::format("no socket for messages about losses: {}", error.what()));
  }
  LossLink::LinkFacts facts{.key = control.key_of_mesh,
                            .self = static_cast<std::uint32_t>(control.rank().value()),
                            .addresses = gather_addresses(control, own),
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
        return members_after(*plan, policy, lost);
      });
}

}  // namespace rankmesh::detail
