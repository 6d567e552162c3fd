// SPDX-License-Identifier: BSD-3-Clause
// How a mesh hears of losses that others find first: the errors of other libraries announce some,
// and other meshes of the process tell some.
#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/detail/patience.hpp"
#include "detail/loss_link.hpp"
#include "detail/loss_watch.hpp"
#include "detail/open_parts.hpp"
#include "mpi/detail/translated_ranks.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/wait/backoff.hpp"

namespace rankmesh::detail {

void LossWatch::look_after(const Error& error, std::uint64_t known) {
  if (dynamic_cast<const LibraryError*>(&error) != nullptr) await_news(known);
  look_at_all(true);
}

// One error passes several places, each of which asks.
void LossWatch::await_news(std::uint64_t known) {
  std::int64_t time = 0;
  OpenParts<LossWatch>::instance().for_each(
      [&](const LossWatch& watch) { time = std::max(time, watch.time_of_news()); });
  const std::int64_t begin = NodeBoard::now();
  Backoff backoff{{.yields = std::chrono::milliseconds{1}}};
  for (look_at_all(true); count() == known; look_at_all(true)) {
    if (NodeBoard::now() < no_news_until) return;
    if (NodeBoard::now() - begin >= time) {
      no_news_until = NodeBoard::now() + time;
      return;
    }
    backoff.pause();
  }
}

std::int64_t LossWatch::time_of_news() const {
  if (!board_->is_open()) return 0;
  const Patience::Duration of_node = patience().sign;
  return nanoseconds(link_ == nullptr ? of_node : of_node + Patience::Duration{link_->silence()});
}

std::shared_ptr<const LossWatch> LossWatch::last_with_losses() {
  const std::lock_guard lock{kept().mutex};
  return kept().last;
}

void LossWatch::raise(LossWatch* own) {
  if (own != nullptr && own->round() == 0) own->learn_from_other_mesh(0);
  if (own != nullptr && own->round() != 0) own->raise_own();
  last_with_losses()->raise_own();
}

std::optional<std::vector<int>> LossWatch::own_ranks_lost_in(const LossWatch& other) const {
  if (other.link_ != nullptr && !other.link_->is_settled()) return std::nullopt;
  std::vector<int> lost;
  for (const Rank rank : other.decide().ranks) lost.push_back(rank.to_int());
  std::vector<int> own = mpi::translated_ranks(other.comm_, lost, comm_);
  std::erase(own, MPI_UNDEFINED);
  return own;
}

// A node that was silent for a moment may be lost in one mesh alone. A rank that fails is lost in
// the mesh that it destroys first, and should tell its own reason.
void LossWatch::learn_from_other_mesh(std::uint64_t known) {
  const auto other = last_with_losses();
  if (other == nullptr || other.get() == this) return;
  const std::int64_t end = NodeBoard::now() + time_of_news();
  std::optional<std::vector<int>> lost;
  for (Backoff backoff; round() == known && NodeBoard::now() < end; look_at_all(true)) {
    if (!lost) lost = own_ranks_lost_in(*other);
    if (lost && lost->empty()) return;
    backoff.pause();
  }
  if (round() != known || !lost) return;
  for (const int rank : *lost)
    if (const auto slot = board_->index_of(Rank{rank}))
      board_->area(*slot).is_late = true;
    else
      link_->see_death(static_cast<std::uint32_t>(rank));
  look_at_all(true);
}

}  // namespace rankmesh::detail
