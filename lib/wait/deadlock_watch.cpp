// SPDX-License-Identifier: BSD-3-Clause
#include "detail/deadlock_watch.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/open_boards.hpp"
#include "mpi/detail/returned_errors.hpp"

namespace rankmesh::detail {
namespace {

// All ranks of a circle look for reports ten times a second.
constexpr std::int64_t notice = 250'000'000;  // nanoseconds

}  // namespace

// Several threads may wait in several meshes. In this case, a rank that waits in one mesh may still
// make calls of another mesh.
DeadlockWatch::~DeadlockWatch() {
  own_.needs(own_.own_slot()).clear();
  if (!mpi::has_one_thread()) return;
  OpenBoards::instance().for_each([&](NodeBoard& board) {
    if (&board != &own_) board.needs(board.own_slot()).clear();
  });
}

void DeadlockWatch::publish(const std::vector<Rank>& needed) {
  PublishedNeeds::Value value;
  value.is_of_this_mesh = true;
  for (const Rank rank : needed)
    if (const auto slot = own_.index_of(rank)) value.add(*slot);
  own_.needs(own_.own_slot()).write(value);
  if (!mpi::has_one_thread()) return;
  OpenBoards::instance().for_each([&](NodeBoard& board) {
    if (&board == &own_) return;
    PublishedNeeds::Value elsewhere;
    for (const Rank rank : needed)
      if (const auto slot = own_.index_of(rank))
        if (const auto other = board.index_of(own_.identity_of(*slot))) elsewhere.add(*other);
    board.needs(board.own_slot()).write(elsewhere);
  });
}

// Returns the shortest circle through this rank, in the order in which the ranks wait for each
// other; empty if there is none.
DeadlockWatch::Circle DeadlockWatch::circle_of(const NodeBoard& board) {
  struct Visit {
    Link link;
    std::size_t from;  // in `visits`
    PublishedNeeds::Value needs;
  };
  const std::size_t self = board.own_slot();
  std::vector<Visit> visits;
  std::vector<bool> is_known(board.ranks().size());
  const auto visit = [&](std::size_t slot, std::size_t from) {
    is_known[slot] = true;
    if (const auto snapshot = board.needs(slot).read())
      visits.push_back({{slot, snapshot->version, snapshot->checks}, from, snapshot->value});
  };
  visit(self, 0);
  for (std::size_t i = 0; i < visits.size(); ++i) {
    if (i > 0 && visits[i].needs.has(self)) {
      Circle circle;
      for (std::size_t v = i; v != 0; v = visits[v].from) circle.push_back(visits[v].link);
      circle.push_back(visits[0].link);
      std::ranges::reverse(circle);
      return circle;
    }
    const PublishedNeeds::Value needs = visits[i].needs;
    for (std::size_t slot = 0; slot < is_known.size(); ++slot)
      if (needs.has(slot) && !is_known[slot]) visit(slot, i);
  }
  return {};
}

// Whether all ranks are still in the same waits, for the same ranks.
bool DeadlockWatch::is_intact(const NodeBoard& board, const Circle& circle) {
  return std::ranges::all_of(circle, [&](const Link& link) {
    const auto now = board.needs(link.slot).read();
    return now && now->version == link.version && board.is_open(link.slot);
  });
}

// Whether every rank has again determined for which ranks it waits since the circle was found. Two
// checks are necessary, because the first one may have begun before the circle was found.
bool DeadlockWatch::is_confirmed(const NodeBoard& board, const Circle& circle) {
  return std::ranges::all_of(circle, [&](const Link& link) {
    const auto now = board.needs(link.slot).read();
    return now && now->checks >= link.checks + 2;
  });
}

bool DeadlockWatch::is_reporter(const Circle& circle) const {
  return std::ranges::none_of(circle, [&](const Link& link) {
    const auto now = own_.needs(link.slot).read();
    return link.slot < own_.own_slot() && now && now->value.is_of_this_mesh;
  });
}

std::string DeadlockWatch::describe(const NodeBoard& board, const Circle& circle,
                                    const RankNames& names) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const Rank rank = board.ranks()[circle[i].slot];
    const Rank next = board.ranks()[circle[(i + 1) % circle.size()].slot];
    parts.push_back(fmt::format("rank {}: {}, for rank {}", names(rank),
                                board.wait_of(circle[i].slot), next.value()));
  }
  return fmt::format("these calls wait for each other: {}", fmt::join(parts, "; "));
}

std::optional<Deadlock> DeadlockWatch::look(const std::vector<Rank>& needed,
                                            const RankNames& names) {
  publish(needed);
  std::optional<Deadlock> found;
  OpenBoards::instance().for_each([&](NodeBoard& board) {
    if (!found) found = board.found_deadlock();
  });
  if (found) return found;
  if (!circle_.empty() && is_confirmed(own_, circle_) && is_intact(own_, circle_) &&
      is_reporter(circle_)) {
    found = Deadlock{describe(own_, circle_, names), NodeBoard::now() + notice};
    std::vector<std::pair<std::size_t, std::uint64_t>> waits;
    for (const Link& link : circle_) waits.emplace_back(link.slot, link.version);
    own_.report_deadlock(waits, *found);
    return found;
  }
  if (circle_.empty() || !is_intact(own_, circle_)) circle_ = circle_of(own_);
  return std::nullopt;
}

}  // namespace rankmesh::detail
