// SPDX-License-Identifier: BSD-3-Clause
// What other ranks learn of a wait in a control queue, and what the wait learns of them.
#include <fmt/format.h>

#include "detail/control_queue_state.hpp"
#include "rankmesh/base/error.hpp"
#include "wait/detail/rank_activities.hpp"

namespace rankmesh::exchange {

using rankmesh::detail::NodeBoard;
using rankmesh::detail::PublishedWait;
using rankmesh::detail::RankActivity;

std::string ControlQueue::State::activity() const {
  return fmt::format("{} of message {} of the control queue of '{}'", is_writer ? "write" : "read",
                     messages, group->name());
}

// The key is that of no other wait, because a rank that waits here is at no common wait point.
PublishedWait ControlQueue::State::publish_wait() const {
  return {runtime().control->board(), 0, activity()};
}

std::string ControlQueue::State::what_does(std::int64_t rank_in_group) const {
  const auto does = runtime().control->board().look(group->ranks().at(rank_in_group));
  return does ? predicate(*does, false) : std::string{};
}

void ControlQueue::State::PeerWatch::look(const std::vector<std::int64_t>& ranks_in_group) {
  next_ = Deadline{interval};
  rankmesh::detail::ControlPlane& control = *state_.runtime().control;
  const RankSet& ranks = state_.group->ranks();
  WaitPoint point{.activity = state_.activity()};
  for (const std::int64_t r : ranks_in_group) {
    if (control.board().has_failed(ranks.at(r))) {
      if (failed_ == r)
        throw PeerError{fmt::format("{} cannot end; rank {} {}", point.activity, state_.name(r),
                                    state_.what_does(r)),
                        "check why that rank ended",
                        {ranks.at(r)}};
      failed_ = r;
      return;
    }
    point.members.push_back(static_cast<int>(ranks.at(r).value()));
  }
  // Ranks on other nodes send a message when they leave.
  control.monitor.require_not_given_up(point);
}

}  // namespace rankmesh::exchange
