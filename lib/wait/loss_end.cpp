// SPDX-License-Identifier: BSD-3-Clause
// The meshes that a process has left, and the ranks that it kills at its end. loss_watch.cpp finds
// the losses.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "detail/loss_watch.hpp"
#include "mpi/detail/unfinished.hpp"

namespace rankmesh::detail {
namespace {

void kill_process(const ProcessIdentity& process) {
  const ProcessState state = state_of(process, ProcessIdentity::own());
  if (state != ProcessState::ended && state != ProcessState::unknown)
    ::kill(static_cast<pid_t>(process.process), SIGKILL);
}

}  // namespace

LossWatch::KeptWatches& LossWatch::kept() {
  static auto* const all =
      new KeptWatches;  // meshes may be destroyed after the objects of all files
  return *all;
}

void LossWatch::KeptWatches::add(std::shared_ptr<const LossWatch> watch) {
  if (watch != nullptr && std::ranges::find(watches, watch) == watches.end())
    watches.push_back(std::move(watch));
}

void LossWatch::leave() {
  has_left_ = true;
  if (exclude_after_ == 0) return;
  const std::lock_guard lock{kept().mutex};
  kept().add(weak_from_this().lock());
}

// Ranks without a place in the next mesh, and spare ones, leave the mesh when they learn of it.
// Nobody has waited for them before.
void LossWatch::wait_until_all_leave() const {
  const std::int64_t since = NodeBoard::now();
  const auto is_left = [&](std::size_t slot) { return slot == board_->own_slot() || is_out(slot); };
  for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot)
    while (!is_left(slot)) {
      if (NodeBoard::now() - since > exclude_after_) exclude_if_late(board_->area(slot));
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

// A rank that was late, and has gone on nevertheless, has left the mesh.
void LossWatch::end_excluded() const {
  if (has_left_ && exclude_after_ != 0) wait_until_all_leave();
  for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot) {
    const RankArea& area = board_->area(slot);
    const bool has_left = area.presence == Presence::destroyed || area.presence == Presence::closed;
    if (slot == board_->own_slot() || !area.is_late || has_left) continue;
    mpi::record_loss();
    kill_process(area.identity());
  }
}

void LossWatch::end_all_excluded() {
  std::vector<std::shared_ptr<const LossWatch>> watches;
  {
    const std::lock_guard lock{kept().mutex};
    watches = kept().watches;
  }
  for (const auto& watch : watches) watch->end_excluded();
}

}  // namespace rankmesh::detail
