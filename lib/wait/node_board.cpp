// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_board.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "detail/open_parts.hpp"
#include "mpi/detail/job_end.hpp"

namespace rankmesh::detail {
namespace {

// The beginning of the memory, before the areas.
struct alignas(128) BoardHeader {
  std::atomic<std::int64_t> last_stall_report{0};
  std::atomic<std::uint64_t> closings{0};      // of all ranks, over all attempts
  std::atomic<std::uint64_t> failed_close{0};  // the last attempt in which a rank could not close
  std::atomic<std::uint64_t> gave_up{0};       // the place of the rank that ended a close, plus 1
  std::atomic<std::uint64_t> balance{0};       // of the messages of all ranks
  std::atomic<std::uint64_t> losses{0};        // see LossWatch
  std::array<std::atomic<std::int64_t>, 4> heard{};  // see LossLink
};
// In `closings`: a rank does not wait for the others any longer.
constexpr std::uint64_t close_ended = std::uint64_t{1} << 63;

BoardHeader& header_of(std::byte* memory) { return *reinterpret_cast<BoardHeader*>(memory); }

// The memory of a rank that is alone.
struct OwnMemory {
  BoardHeader header;
  RankArea area;
};

struct flock lock_of(std::size_t slot) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(slot);
  lock.l_len = 1;
  return lock;
}

// Says which call of a group a rank is in.
std::string text_of(const CurrentCall::Value& call) {
  const CallDescriptor& descriptor = call.descriptor;
  const Operation operation = descriptor.operation();
  std::string text = fmt::format("{}.{}", call.group.text(), to_string(operation));
  if (!is_point_to_point(operation)) return text + fmt::format(", call {}", call.number);
  if (operation != Operation::recv) text += fmt::format(" to member {}", descriptor.peer());
  if (operation != Operation::send) text += fmt::format(" from member {}", descriptor.source());
  return text + fmt::format(" (tag {})", descriptor.tag());
}

std::optional<RankStatus> call_of(const RankArea& area) {
  const std::uint64_t sequence = area.call.sequence();
  if (sequence % 2 == 0) return std::nullopt;
  const auto call = area.call.read(sequence);
  return RankStatus{.kind = RankStatus::Kind::in_call,
                    .text = call ? text_of(*call) : "calls that change quickly"};
}

}  // namespace

std::atomic<std::uint64_t>& NodeBoard::losses() const { return header_of(memory_).losses; }

std::atomic<std::int64_t>& NodeBoard::heard(std::size_t neighbour) const {
  return header_of(memory_).heard.at(neighbour);
}

bool NodeBoard::is_gone(std::size_t slot) const {
  return (area(slot).has_come && !area(slot).is_open()) || has_ended(slot);
}

std::size_t NodeBoard::bytes(std::size_t ranks) {
  return sizeof(BoardHeader) + ranks * sizeof(RankArea);
}

std::int64_t NodeBoard::now() { return monotonic_nanoseconds(); }

NodeBoard::NodeBoard(std::byte* memory, std::shared_ptr<void> owner, int descriptor,
                     std::vector<Rank> ranks, Rank self, std::shared_ptr<Recorder> recorder,
                     std::size_t spares)
    : owner_{memory != nullptr ? std::move(owner) : std::make_shared<OwnMemory>()},
      memory_{memory != nullptr ? memory : static_cast<std::byte*>(owner_.get())},
      descriptor_{descriptor},
      ranks_{std::move(ranks)},
      members_{ranks_.size() - spares},
      self_{self},
      own_slot_{index_of(self).value()},
      own_{area(own_slot_)},
      recorder_{std::move(recorder)} {
  struct flock lock = lock_of(own_slot_);
  own_.has_lock = descriptor_ >= 0 && ::fcntl(descriptor_, F_OFD_SETLK, &lock) == 0;
  own_.process = ProcessIdentity::own();
  own_.waited = now();
  own_.has_come = true;
  OpenParts<NodeBoard>::instance().add(*this);
  // If a rank ends the job with its own message, its peers do not report its end.
  mpi::on_last_words([] {
    OpenParts<NodeBoard>::instance().for_each([](NodeBoard& b) { b.own_.is_end_reported = true; });
  });
}

NodeBoard::~NodeBoard() {
  leave(Presence::destroyed);
  OpenParts<NodeBoard>::instance().remove(*this);
}

RankArea& NodeBoard::area(std::size_t slot) const {
  return reinterpret_cast<RankArea*>(memory_ + sizeof(BoardHeader))[slot];
}

// All attempts are counted in one number. Attempt n is complete when the number has reached n times
// the members; before that, no rank begins the next one.
void NodeBoard::begin_close(bool has_failed, std::uint64_t balance) {
  ++closes_;
  header_of(memory_).balance += balance - std::exchange(balance_, balance);
  if (has_failed) header_of(memory_).failed_close = closes_;
  own_.closes = closes_;
  ++header_of(memory_).closings;  // last: whoever sees it sees the failure
}

std::vector<int> NodeBoard::not_closing() const {
  std::vector<int> ranks;
  for (std::size_t slot = 0; slot < members_; ++slot)
    if (area(slot).closes < closes_) ranks.push_back(static_cast<int>(ranks_[slot].value()));
  return ranks;
}

std::uint64_t NodeBoard::balance_of_all() const { return header_of(memory_).balance; }

bool NodeBoard::all_close() const { return header_of(memory_).closings >= closes_ * members_; }

bool NodeBoard::give_up_close() {
  BoardHeader& header = header_of(memory_);
  std::uint64_t nobody = 0;
  const bool is_first = header.gave_up.compare_exchange_strong(nobody, *index_of(self_) + 1);
  // One word decides, so a rank that comes now either completes the close or learns of its end.
  std::uint64_t closings = header.closings;
  do {
    if ((closings & close_ended) == 0 && closings >= closes_ * members_) {
      if (is_first) header.gave_up = 0;
      return false;
    }
  } while (!header.closings.compare_exchange_weak(closings, closings | close_ended));
  return true;
}

std::optional<std::size_t> NodeBoard::who_gave_up_close() const {
  if ((header_of(memory_).closings & close_ended) == 0) return std::nullopt;
  return header_of(memory_).gave_up - 1;
}

bool NodeBoard::has_failed_to_close() const { return header_of(memory_).failed_close == closes_; }

std::optional<std::size_t> NodeBoard::index_of(Rank rank) const {
  const auto found = std::ranges::lower_bound(ranks_, rank);
  if (found == ranks_.end() || *found != rank) return std::nullopt;
  return static_cast<std::size_t>(found - ranks_.begin());
}

std::optional<std::size_t> NodeBoard::index_of(const ProcessIdentity& process) const {
  for (std::size_t slot = 0; slot < ranks_.size(); ++slot)
    if (area(slot).identity() == process) return slot;
  return std::nullopt;
}

void NodeBoard::publish(const void* waiter, const record::Wait& wait, bool is_of_mesh) {
  const std::lock_guard lock{mutex_};
  std::optional<ShownWait>& kept = is_of_mesh ? here_ : elsewhere_;
  if (kept) return;
  kept = {waiter, wait};
  if (is_of_mesh || !here_) show(wait);
}

void NodeBoard::end_wait(const void* waiter) {
  const std::lock_guard lock{mutex_};
  const auto end = [&](std::optional<ShownWait>& kept) {
    const bool ends = kept && kept->waiter == waiter;
    if (ends) kept.reset();
    return ends;
  };
  const bool was_shown = end(here_) || (end(elsewhere_) && !here_);
  if (!was_shown) return;
  if (elsewhere_) return show(elsewhere_->wait);
  own_.wait.clear();
  if (recorder_ != nullptr) recorder_->end_wait();
}

void NodeBoard::show(const record::Wait& wait) {
  own_.wait.write(wait.point, now(), wait.text);
  if (recorder_ != nullptr) recorder_->publish(wait);
}

void NodeBoard::leave(Presence how, const std::string& reason) {
  // A child process after fork() must not speak for this rank.
  if (!is_open() || ::getpid() != own_.process.process) return;
  if (!reason.empty()) own_.reason.write(0, now(), reason);
  own_.presence = how;
  if (recorder_ != nullptr) recorder_->leave(how, reason);
  OpenParts<NodeBoard>::instance().remove(*this);
  close_descriptor();
}

void NodeBoard::close_descriptor() noexcept {
  if (const int descriptor = std::exchange(descriptor_, -1); descriptor >= 0) ::close(descriptor);
}

bool NodeBoard::is_locked(std::size_t slot) const {
  struct flock lock = lock_of(slot);
  return descriptor_ < 0 || ::fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool NodeBoard::has_ended(std::size_t slot) const {
  if (slot == own_slot_) return false;
  const ProcessIdentity process = area(slot).identity();
  const std::uint64_t own_namespace = own_.process.pid_namespace;
  // A child that the rank has forked may hold the lock for it.
  const bool is_gone = (area(slot).has_lock && !is_locked(slot)) ||
                       (own_namespace != 0 && process.pid_namespace == own_namespace &&
                        ::kill(static_cast<pid_t>(process.process), 0) != 0 && errno == ESRCH);
  return is_gone && area(slot).is_open();  // last: a rank says that it leaves, then unlocks
}

bool NodeBoard::has_failed(Rank rank) const {
  const auto slot = index_of(rank);
  return slot && (area(*slot).presence == Presence::failed || has_ended(*slot));
}

bool NodeBoard::has_destroyed(Rank rank) const {
  const auto slot = index_of(rank);
  return slot && area(*slot).presence == Presence::destroyed;
}

std::optional<RankStatus> NodeBoard::look(Rank rank) const {
  using Kind = RankStatus::Kind;
  const auto slot = index_of(rank);
  if (!slot) return std::nullopt;
  const RankArea& of_rank = area(*slot);
  switch (of_rank.presence) {
    case Presence::closed:
      return RankStatus{.kind = Kind::closed};
    case Presence::destroyed:
      return RankStatus{.kind = Kind::destroyed};
    case Presence::failed: {
      const auto reason = of_rank.reason.read();
      return RankStatus{.kind = Kind::failed, .text = reason ? reason->text : ""};
    }
    case Presence::open:
      break;
  }
  if (!of_rank.has_come) return RankStatus{};
  const ProcessState state =
      has_ended(*slot) ? ProcessState::ended : state_of(of_rank.identity(), own_.process);
  if (state == ProcessState::ended) return RankStatus{.kind = Kind::ended};
  if (state == ProcessState::stopped) return RankStatus{.kind = Kind::stopped};
  if (auto wait = of_rank.wait.read())
    return RankStatus{.kind = Kind::waits, .key = wait->key, .text = std::move(wait->text)};
  if (auto call = call_of(of_rank)) return call;
  return RankStatus{.kind = state == ProcessState::unknown ? Kind::silent : Kind::outside};
}

bool NodeBoard::claim_end_report(Rank rank) const {
  const auto slot = index_of(rank);
  return slot && !area(*slot).is_end_reported.exchange(true);
}

bool NodeBoard::claim_stall_report(std::int64_t since) const {
  std::atomic<std::int64_t>& last = header_of(memory_).last_stall_report;
  std::int64_t before = last;
  return before < since && last.compare_exchange_strong(before, now());
}

double NodeBoard::watch_call() {
  if (recorder_ != nullptr) recorder_->stamp();
  const std::uint64_t sequence = own_.call.sequence();
  if (sequence % 2 == 0) return 0;
  const std::int64_t time = now();
  if (std::exchange(watched_, sequence) != sequence) watched_since_ = time;
  return static_cast<double>(time - watched_since_) * 1e-9;
}

std::string others_on_node(const NodeBoard& board, const RankNames& names,
                           const std::vector<Rank>& but) {
  std::vector<StatusOfRank> others;
  for (const Rank rank : board.ranks())
    if (rank != board.self() && std::ranges::find(but, rank) == but.end())
      others.push_back({rank, *board.look(rank)});
  return others.empty() ? "" : "; others on this node: " + describe(others, names);
}

}  // namespace rankmesh::detail
