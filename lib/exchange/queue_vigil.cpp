// SPDX-License-Identifier: BSD-3-Clause
#include "detail/queue_vigil.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/detail/patience.hpp"
#include "rankmesh/base/error.hpp"
#include "wait/detail/rank_activities.hpp"

namespace rankmesh::exchange::detail {
namespace {

using rankmesh::detail::NodeBoard;

constexpr std::uint64_t no_point = 0;  // the key of no wait of a WaitMonitor

// In nanoseconds.
std::int64_t check_interval() {
  return static_cast<std::int64_t>(rankmesh::detail::patience().check.count() * 1e9);
}

}  // namespace

QueueVigil::QueueVigil(rankmesh::detail::ControlPlane& control,
                       std::function<std::string()> activity,
                       std::function<std::vector<Rank>()> awaited)
    : control_{control}, activity_{std::move(activity)}, awaited_{std::move(awaited)} {}

void QueueVigil::look() {
  const NodeBoard* const board = control_.find_board();
  if (board == nullptr) return;
  const std::int64_t now = NodeBoard::now();
  if (next_check_ == 0) {
    next_check_ = now + check_interval();
    published_ =
        rankmesh::detail::PublishedWait{board, {no_point, activity_(), RankSet::of(awaited_())}};
  }
  if (now < next_check_) return;
  next_check_ = now + check_interval();
  // The rank may have done its part before it failed, so the condition of the wait is polled for
  // another moment.
  const auto found = failed();
  if (found && found == failed_) fail(*found);
  failed_ = found;
  if (departure_ != nullptr) std::rethrow_exception(departure_);
  listen();
}

// Ranks on other nodes send a message when they leave.
void QueueVigil::listen() {
  WaitPoint point{.key = no_point, .activity = activity_()};
  for (const Rank rank : awaited_()) point.members.push_back(static_cast<int>(rank.value()));
  try {
    control_.monitor.require_not_given_up(point);
  } catch (const PeerError& error) {
    departure_ = std::make_exception_ptr(
        PeerError{fmt::format("{} cannot end; {} (found by rank {})", activity_(), error.message(),
                              control_.rank().value()),
                  "check why that rank ended", error.missing()});
  }
}

std::optional<Rank> QueueVigil::failed() const {
  for (const Rank rank : awaited_())
    if (control_.board().has_failed(rank)) return rank;
  return std::nullopt;
}

void QueueVigil::fail(Rank rank) const {
  const auto activity = control_.board().look(rank);
  throw PeerError{fmt::format("{} cannot end; {} (found by rank {})", activity_(),
                              rankmesh::detail::describe(
                                  {{rank, activity.value_or(rankmesh::detail::RankActivity{})}},
                                  control_.names.of_mesh()),
                              control_.rank().value()),
                  "check why that rank ended",
                  {rank}};
}

}  // namespace rankmesh::exchange::detail
