// SPDX-License-Identifier: BSD-3-Clause
#include "detail/deadlock_watch.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/open_parts.hpp"

namespace rankmesh::detail {
namespace {

// All ranks of a circle look for reports ten times a second.
constexpr std::int64_t notice = 250'000'000;  // nanoseconds

// Returns the circle that another rank has found, and that this rank's wait is part of.
std::optional<Deadlock> found_by_another(const NodeBoard& board) {
  const std::uint64_t version = board.own().circle_version;
  const auto needs = board.own().needs.read();
  if (version == 0 || !needs || needs->version != version) return std::nullopt;
  const auto text = board.area(board.own().circle_finder).found.read();
  if (!text) return std::nullopt;
  return Deadlock{text->text, text->since};
}

}  // namespace

// Returns the shortest circle through this rank; empty if there is none.
std::vector<DeadlockWatch::Link> DeadlockWatch::find() const {
  std::vector<Link> visits;
  std::vector<std::size_t> from;  // of each visit: the one before
  std::vector<bool> is_known(board_.ranks().size());
  const auto visit = [&](std::size_t slot, std::size_t before) {
    is_known[slot] = true;
    if (const auto needs = board_.area(slot).needs.read()) {
      visits.push_back({slot, *needs});
      from.push_back(before);
    }
  };
  visit(board_.own_slot(), 0);
  for (std::size_t i = 0; i < visits.size(); ++i) {
    const Needs needs = visits[i].found.needs;
    if (i > 0 && needs.has(board_.own_slot())) {
      std::vector<Link> circle{visits[i]};
      for (std::size_t v = i; v != 0; v = from[v]) circle.push_back(visits[from[v]]);
      std::ranges::reverse(circle);
      return circle;
    }
    for (std::size_t slot = 0; slot < is_known.size(); ++slot)
      if (needs.has(slot) && !is_known[slot]) visit(slot, i);
  }
  return {};
}

// Whether all ranks are still in the same waits, for the same ranks.
bool DeadlockWatch::is_intact() const {
  return std::ranges::all_of(circle_, [&](const Link& link) {
    const auto now = board_.area(link.slot).needs.read();
    return now && now->version == link.found.version && board_.area(link.slot).is_open();
  });
}

// Whether every rank has again determined for which ranks it waits since the circle was found. Two
// checks are necessary, because the first one may have begun before the circle was found.
bool DeadlockWatch::is_confirmed() const {
  return std::ranges::all_of(circle_, [&](const Link& link) {
    const auto now = board_.area(link.slot).needs.read();
    return now && now->checks >= link.found.checks + 2;
  });
}

bool DeadlockWatch::is_reporter() const {
  return std::ranges::none_of(circle_, [&](const Link& link) {
    return link.slot < board_.own_slot() && link.found.needs.is_of_own_mesh();
  });
}

Deadlock DeadlockWatch::report(const RankNames& names) const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < circle_.size(); ++i) {
    const Rank rank = board_.ranks()[circle_[i].slot];
    const Rank next = board_.ranks()[circle_[(i + 1) % circle_.size()].slot];
    const auto wait = board_.area(circle_[i].slot).wait.read();
    parts.push_back(
        fmt::format("rank {}: {}, for rank {}", names(rank), wait ? wait->text : "", next.value()));
  }
  const Deadlock deadlock{
      fmt::format("these calls wait for each other: {}", fmt::join(parts, "; ")),
      NodeBoard::now() + notice};
  board_.own().found.write(0, deadlock.at, deadlock.text);
  for (const Link& link : circle_) {
    if (link.slot == board_.own_slot()) continue;
    board_.area(link.slot).circle_finder = board_.own_slot();
    board_.area(link.slot).circle_version = link.found.version;
  }
  return deadlock;
}

std::optional<Deadlock> DeadlockWatch::look(const RankNames& names) {
  std::optional<Deadlock> found;
  OpenParts<NodeBoard>::instance().for_each([&](const NodeBoard& board) {
    if (!found) found = found_by_another(board);
  });
  if (found) return found;
  if (circle_.empty() || !is_intact())
    circle_ = find();
  else if (is_confirmed() && is_intact() && is_reporter())
    return report(names);
  return std::nullopt;
}

}  // namespace rankmesh::detail
