// SPDX-License-Identifier: BSD-3-Clause
#include "detail/loss_watch.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <ranges>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/patience.hpp"
#include "base/detail/text.hpp"
#include "detail/loss_link.hpp"
#include "detail/open_parts.hpp"
#include "detail/progress.hpp"
#include "mpi/detail/translated_ranks.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

constexpr const char* hint_after_loss =
    "call next() on this mesh: it opens the mesh of the survivors; or end this program";

// The word of the mesh: when the round began, in microseconds; its number; whether the watch has
// ended, because all survivors have opened the next mesh.
constexpr std::uint64_t over = 1;
constexpr int bits_of_round = 16;
std::uint64_t word_of(std::uint64_t round) {
  return static_cast<std::uint64_t>(NodeBoard::now() / 1000) << bits_of_round | round << 1;
}
std::uint64_t round_in(std::uint64_t word) { return word % (1U << bits_of_round) >> 1; }
std::int64_t begin_in(std::uint64_t word) {
  return static_cast<std::int64_t>(word >> bits_of_round) * 1000;
}

// The fate of a rank: the last round in which it was looked at, and whether it was lost in it.
constexpr std::uint64_t lost = 1;
std::uint64_t fate_of(std::uint64_t round, bool is_lost) {
  return round << 1 | (is_lost ? lost : 0);
}

[[noreturn]] void throw_excluded(const std::string& mesh) {
  throw Error{fmt::format("this rank is excluded from the mesh {}: the other ranks have waited for "
                          "it, or have not heard its node, for too long, and go on without it",
                          mesh),
              "end this process"};
}

}  // namespace

std::atomic<std::uint64_t> LossWatch::rounds_seen{0};
std::atomic<bool> LossWatch::stops{false};
static_assert(std::atomic<bool>::is_always_lock_free);
std::atomic<std::int64_t> LossWatch::shortest_limit{0};
std::atomic<std::int64_t> LossWatch::no_news_until{0};

std::shared_ptr<LossWatch> LossWatch::create(std::shared_ptr<NodeBoard> board, RankNames names,
                                             std::string mesh, std::optional<std::int64_t> step,
                                             const mpi::CommunicatorView& comm,
                                             std::int64_t exclude_after,
                                             std::unique_ptr<LossLink> link) {
  const std::shared_ptr<LossWatch> watch{new LossWatch{
      std::move(board), std::move(names), std::move(mesh), comm, exclude_after, std::move(link)}};
  if (exclude_after != 0 && (shortest_limit == 0 || exclude_after < shortest_limit))
    shortest_limit = exclude_after;
  if (step) (void)watch->commit(*step);
  OpenParts<LossWatch>::instance().add(*watch);
  mpi::on_end_of_survivor(&LossWatch::end_all_excluded);
  return watch;
}

LossWatch::LossWatch(std::shared_ptr<NodeBoard> board, RankNames names, std::string mesh,
                     const mpi::CommunicatorView& comm, std::int64_t exclude_after,
                     std::unique_ptr<LossLink> link)
    : board_{std::move(board)},
      names_{std::move(names)},
      mesh_{std::move(mesh)},
      comm_{comm},
      exclude_after_{exclude_after},
      link_{std::move(link)} {}

LossWatch::~LossWatch() { OpenParts<LossWatch>::instance().remove(*this); }

void LossWatch::look_at_all(bool at_once) {
  bool has_news = false;
  OpenParts<LossWatch>::instance().for_each(
      [&](LossWatch& watch) { has_news = watch.look(at_once) || has_news; });
  // After the list is free: fork() waits for this list and for that of the meshes, in any order.
  if (has_news) leave_fast_path();
}

void LossWatch::look_at_all(Waiting& waiting, const mpi::CommunicatorView& comm,
                            const std::function<std::vector<int>()>& awaited) {
  look_at_all();
  const std::int64_t now = NodeBoard::now();
  OpenParts<LossWatch>::instance().for_each(
      [&](const LossWatch& watch) { watch.board_->own().waited = now; });
  // If this rank was stopped, or had no core, the others may have been stopped too.
  const std::int64_t limit = shortest_limit;
  if (now - std::exchange(waiting.last_look, now) > limit / 4) waiting.since = now;
  if (limit == 0 || now - waiting.since < limit || now < waiting.next_doubt) return;
  waiting.next_doubt = now + nanoseconds(patience().deaths);
  const std::vector<int> members = awaited();
  if (members.empty()) return;
  OpenParts<LossWatch>::instance().for_each([&](LossWatch& watch) {
    if (watch.exclude_after_ == 0 || now - waiting.since < watch.exclude_after_) return;
    watch.exclude_late(mpi::translated_ranks(comm, members, watch.comm_));
  });
}

void LossWatch::exclude_if_late(RankArea& area) const {
  if (NodeBoard::now() - area.waited > exclude_after_) area.is_late = true;
}

void LossWatch::exclude_late(const std::vector<int>& awaited) {
  std::vector<std::uint32_t> elsewhere;
  for (const int rank : awaited) {
    if (rank == MPI_UNDEFINED) continue;
    if (const auto slot = board_->index_of(Rank{rank})) {
      exclude_if_late(board_->area(*slot));
    } else if (link_ != nullptr) {
      elsewhere.push_back(static_cast<std::uint32_t>(rank));
    }
  }
  if (!elsewhere.empty()) link_->doubt(elsewhere);
}

void LossWatch::fail() {
  if (link_ != nullptr)
    link_->see_death(static_cast<std::uint32_t>(board_->ranks()[board_->own_slot()].value()));
}

void LossWatch::close() {
  if (link_ != nullptr && !link_->close()) mpi::record_loss();  // they cannot finalise MPI
  leave();
}

// A member leaves the mesh as closed only after all have come to close it.
bool LossWatch::has_closed() const {
  if (link_ != nullptr) return link_->has_closed();
  for (std::size_t slot = 0; slot < board_->members(); ++slot)
    if (board_->area(slot).presence == Presence::closed) return true;
  return false;
}

std::uint64_t LossWatch::round() const {
  return link_ != nullptr ? link_->rounds() : round_in(board_->losses());
}

// Returns whether this process sees a round for the first time.
bool LossWatch::look(bool at_once) {
  const std::int64_t now = NodeBoard::now();
  const std::uint64_t word = board_->losses();
  if (!board_->is_open()) return false;
  // The others have gone on, and this rank may have been excluded.
  if ((word & over) != 0) return is_lost(board_->own_slot(), round_in(word)) && notice();
  if (link_ != nullptr && link_->is_over()) return false;
  if (at_once || now >= next_look_) {
    next_look_ = now + nanoseconds(patience().deaths);
    for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot) {
      const bool is_known = (board_->area(slot).fate & lost) != 0;
      // A rank that closes the mesh, or that has no place in the next one, is not lost.
      const bool is_failed =
          board_->area(slot).is_late || board_->has_failed(board_->ranks()[slot]);
      if (is_known || !is_failed) continue;
      const bool is_spare = slot >= board_->members();
      if (is_spare) mpi::record_loss();
      // The loss of a spare rank concerns nobody until another one is lost.
      if (link_ != nullptr)
        link_->see_death(static_cast<std::uint32_t>(board_->ranks()[slot].value()));
      else if (!is_spare || round_in(word) != 0)
        begin_round_for(slot, word);
    }
  }
  return notice();
}

// Ranks that are found while a round settles are part of it.
void LossWatch::begin_round_for(std::size_t slot, std::uint64_t word) {
  const std::int64_t settle = nanoseconds(patience().settle);
  if (round_in(word) != 0) {
    if (NodeBoard::now() < begin_in(word) + settle) return;
    decide_fates(round_in(word));
    if (is_lost(slot, round_in(word))) return;
  }
  board_->losses().compare_exchange_strong(word, word_of(round_in(word) + 1));
}

// `noticed_` is set last: whoever sees it, in any thread, sees that the round is counted.
bool LossWatch::notice() {
  const std::uint64_t round = this->round();
  if (noticed_ >= round) return false;
  const std::lock_guard lock{kept().mutex};
  auto self = weak_from_this().lock();
  if (noticed_ >= round || self == nullptr) return false;
  mpi::record_loss();
  kept().last = self;
  kept().add(std::move(self));
  ++rounds_seen;
  noticed_ = round;
  return true;
}

bool LossWatch::is_out(std::size_t slot) const {
  return board_->area(slot).is_late || board_->is_gone(slot);
}

bool LossWatch::is_lost(std::size_t slot, std::uint64_t round) const {
  const std::uint64_t fate = board_->area(slot).fate;
  return (fate & lost) != 0 && fate >> 1 <= round;
}

// Decides what nobody has decided yet. A fate of a later round says that the rank was not lost in
// this one.
void LossWatch::decide_fates(std::uint64_t round) const {
  const std::size_t ranks = board_->ranks().size();
  for (std::size_t slot = 0; slot < ranks; ++slot) (void)freeze(board_->area(slot));
  for (std::size_t slot = 0; slot < ranks; ++slot) {
    std::atomic<std::uint64_t>& fate = board_->area(slot).fate;
    std::uint64_t known = fate;
    while ((known & lost) == 0 && known >> 1 < round &&
           !fate.compare_exchange_weak(known, fate_of(round, is_out(slot)))) {
    }
  }
}

LossWatch::Loss LossWatch::decide_with_other_nodes() const {
  using Failure = LossAgreement::Failure;
  const LossLink::LinkState state = link_->wait_for(link_->rounds());
  if (link_->has_closed()) throw Error{fmt::format("the mesh {} is closed", mesh_)};
  if (state.failure == Failure::excluded) throw_excluded(mesh_);
  if (state.failure == Failure::no_majority)
    throw Error{fmt::format("the mesh {} has lost ranks, and those that this rank still reaches "
                            "are not the majority of it",
                            mesh_),
                "end the program, and begin again from a checkpoint"};
  Loss loss{.round = state.rounds};
  for (std::size_t rank = 0; rank < state.decision.lost.size(); ++rank)
    if (state.decision.lost[rank]) loss.ranks.emplace_back(static_cast<std::int64_t>(rank));
  if (state.decision.step >= 0) loss.step = state.decision.step;
  return loss;
}

LossWatch::Loss LossWatch::decide() const {
  if (link_ != nullptr) return decide_with_other_nodes();
  Loss loss;
  for (std::uint64_t word = board_->losses(); round_in(word) != loss.round;
       word = board_->losses()) {
    const auto settled = std::chrono::nanoseconds{begin_in(word)} + patience().settle;
    const auto left = settled - std::chrono::nanoseconds{NodeBoard::now()};
    if (left.count() > 0) std::this_thread::sleep_for(left);
    loss.round = round_in(word);
    decide_fates(loss.round);
  }
  if (is_lost(board_->own_slot(), loss.round)) throw_excluded(mesh_);
  // The step is that of the survivors of the first round, so that it stays the same. If there are
  // none, no mesh remains.
  std::optional<std::uint64_t> least;
  for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot) {
    if (is_lost(slot, loss.round)) loss.ranks.push_back(board_->ranks()[slot]);
    if (slot < board_->members() && !is_lost(slot, 1))
      least = std::min(least.value_or(~std::uint64_t{0}), board_->area(slot).committed >> 1);
  }
  if (least.value_or(0) != 0 && loss.round != 0) loss.step = static_cast<std::int64_t>(*least) - 1;
  return loss;
}

void LossWatch::raise_own() const {
  const Loss loss = decide();
  const auto names = loss.ranks | std::views::transform(names_);
  const std::string step = loss.step
                               ? fmt::format("all survivors have committed step {}", *loss.step)
                               : std::string{"no step is committed"};
  throw LostRanks{
      fmt::format("the mesh {} has lost {}: {}; {}", mesh_,
                  count_text(std::ssize(loss.ranks), "rank"), fmt::join(names, ", "), step),
      hint_after_loss, loss.ranks, loss.step};
}

std::vector<std::int64_t> LossWatch::processes() const {
  std::vector<std::int64_t> processes;
  for (std::size_t slot = 0; slot < board_->ranks().size(); ++slot) {
    const ProcessIdentity process = board_->area(slot).identity();
    if (process.process != 0 && process.pid_namespace == board_->own().process.pid_namespace)
      processes.push_back(process.process);
  }
  return processes;
}

void LossWatch::come(std::uint64_t round, Gathering meeting) {
  if (link_ != nullptr)
    return link_->come(meeting == Gathering::before ? LossAgreement::Attendance::before
                                                    : LossAgreement::Attendance::opened);
  board_->own().met = round << 1 | static_cast<std::uint64_t>(meeting);
}

std::vector<Rank> LossWatch::missing(std::uint64_t round, const std::vector<Rank>& ranks,
                                     Gathering meeting) const {
  std::vector<Rank> missing;
  if (link_ != nullptr) return missing;
  for (const Rank rank : ranks)
    if (board_->area(board_->index_of(rank).value()).met <
        (round << 1 | static_cast<std::uint64_t>(meeting)))
      missing.push_back(rank);
  return missing;
}

bool LossWatch::have_met(std::uint64_t round, const std::vector<Rank>& ranks, Gathering meeting) {
  if (link_ != nullptr)
    return this->round() == round &&
           (meeting == Gathering::before ? link_->have_all_come() : link_->is_over());
  std::uint64_t word = board_->losses();
  if (round_in(word) != round) return false;
  if ((word & over) != 0) return true;
  const std::vector<Rank> others = missing(round, ranks, meeting);
  for (const Rank rank : others)
    if (const std::size_t slot = board_->index_of(rank).value(); is_out(slot))
      begin_round_for(slot, word);
  if (!others.empty()) return false;
  if (meeting == Gathering::before) return true;
  return board_->losses().compare_exchange_strong(word, word | over) ||
         (round_in(word) == round && (word & over) != 0);
}

}  // namespace rankmesh::detail
