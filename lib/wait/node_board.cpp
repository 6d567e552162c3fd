// SPDX-License-Identifier: BSD-3-Clause
#include "detail/node_board.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "detail/open_boards.hpp"

namespace rankmesh::detail {
namespace {

struct BoardHeader {
  std::atomic<std::int64_t> last_stall_report{0};
  std::atomic<std::uint64_t> closings{0};      // of all ranks, over all attempts
  std::atomic<std::uint64_t> failed_close{0};  // the last attempt in which a rank could not close
};
constexpr std::size_t header_bytes = 128;
static_assert(sizeof(BoardHeader) <= header_bytes);

BoardSlot* slot_at(std::byte* memory, std::size_t slot) {
  return reinterpret_cast<BoardSlot*>(memory + header_bytes) + slot;
}

record::Presence recorded(Presence presence) {
  switch (presence) {
    case Presence::closed:
      return record::Presence::closed;
    case Presence::destroyed:
      return record::Presence::destroyed;
    case Presence::failed:
      return record::Presence::failed;
    default:
      return record::Presence::open;
  }
}

struct flock lock_of(std::size_t slot) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(slot);
  lock.l_len = 1;
  return lock;
}

// Says which call of a group a rank is in.
std::string which_call(Operation operation, std::uint64_t number) {
  if (!is_point_to_point(operation)) return fmt::format(", call {}", number);
  const PublishedMessage message = PublishedMessage::of(number);
  const std::string to = fmt::format(" to member {}", message.to);
  const std::string from = fmt::format(" from member {}", message.from);
  return fmt::format("{}{} (tag {})", operation == Operation::recv ? "" : to,
                     operation == Operation::send ? "" : from, message.tag);
}

}  // namespace

std::size_t NodeBoard::bytes(std::size_t ranks) { return header_bytes + ranks * sizeof(BoardSlot); }

std::int64_t NodeBoard::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

NodeBoard::NodeBoard(std::byte* memory, std::shared_ptr<void> owner, int descriptor,
                     std::vector<Rank> ranks, Rank self, std::shared_ptr<Recorder> recorder)
    : owner_{std::move(owner)},
      memory_{memory},
      descriptor_{descriptor},
      ranks_{std::move(ranks)},
      self_{self},
      recorder_{std::move(recorder)} {
  // Zeroed memory is a valid slot: all members are atomic numbers.
  BoardSlot& slot = *slot_of(self);
  own_call_ = &slot.call;
  slot.process = identity_.process;
  slot.start_time = identity_.start_time;
  slot.pid_namespace = identity_.pid_namespace;
  for (std::size_t i = 0; i < slot.token.size(); ++i) slot.token[i] = identity_.token[i];
  const auto index = static_cast<std::size_t>(&slot - slot_at(memory_, 0));
  own_slot_ = index;
  struct flock lock = lock_of(index);
  slot.has_lock = descriptor_ >= 0 && ::fcntl(descriptor_, F_OFD_SETLK, &lock) == 0;
  slot.presence = Presence::open;
  OpenBoards::instance().add(*this);
}

NodeBoard::~NodeBoard() {
  leave(Presence::destroyed);
  OpenBoards::instance().remove(*this);
}

BoardSlot* NodeBoard::slot_of(Rank rank) const {
  const auto found = std::ranges::lower_bound(ranks_, rank);
  if (found == ranks_.end() || *found != rank) return nullptr;
  return slot_at(memory_, static_cast<std::size_t>(found - ranks_.begin()));
}

// A rank begins the next attempt only after all ranks have begun this one.
void NodeBoard::begin_close(bool has_failed) {
  auto& header = *reinterpret_cast<BoardHeader*>(memory_);
  ++closes_;
  if (has_failed) header.failed_close = closes_;
  ++header.closings;  // last: whoever sees it sees the failure
}

bool NodeBoard::all_close() const {
  return reinterpret_cast<const BoardHeader*>(memory_)->closings >= closes_ * ranks_.size();
}

bool NodeBoard::has_failed_to_close() const {
  return reinterpret_cast<const BoardHeader*>(memory_)->failed_close == closes_;
}

std::optional<std::size_t> NodeBoard::index_of(Rank rank) const {
  const BoardSlot* slot = slot_of(rank);
  if (slot == nullptr) return std::nullopt;
  return static_cast<std::size_t>(slot - slot_at(memory_, 0));
}

std::optional<std::size_t> NodeBoard::index_of(const ProcessIdentity& process) const {
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (identity_of(i) == process) return i;
  return std::nullopt;
}

ProcessIdentity NodeBoard::identity_of(std::size_t index) const {
  const BoardSlot& slot = *slot_at(memory_, index);
  return {slot.process, slot.start_time, slot.pid_namespace, {slot.token[0], slot.token[1]}};
}

bool NodeBoard::is_open(std::size_t index) const {
  return slot_at(memory_, index)->presence == Presence::open;
}

std::string NodeBoard::wait_of(std::size_t index) const {
  const auto wait = slot_at(memory_, index)->wait.read();
  return wait ? wait->text : "";
}

PublishedNeeds& NodeBoard::needs(std::size_t index) const { return slot_at(memory_, index)->needs; }

PublishedDeviceWork& NodeBoard::device_work(std::size_t slot) const {
  return slot_at(memory_, slot)->device;
}

void NodeBoard::report_deadlock(const std::vector<std::pair<std::size_t, std::uint64_t>>& waits,
                                const Deadlock& deadlock) {
  slot_at(memory_, own_slot_)->deadlock.write(0, deadlock.at, deadlock.text);
  for (const auto& [index, version] : waits) {
    if (index == own_slot_) continue;
    BoardSlot& slot = *slot_at(memory_, index);
    slot.deadlock_finder = own_slot_;
    slot.deadlock_version = version;
  }
}

std::optional<Deadlock> NodeBoard::found_deadlock() const {
  const BoardSlot& own = *slot_at(memory_, own_slot_);
  const std::uint64_t version = own.deadlock_version;
  const auto needs = own.needs.read();
  if (version == 0 || !needs || needs->version != version) return std::nullopt;
  const auto text = slot_at(memory_, own.deadlock_finder)->deadlock.read();
  if (!text) return std::nullopt;
  return Deadlock{text->text, text->since};
}

std::uint64_t NodeBoard::publish(const WaitNotice& wait) {
  const std::lock_guard lock{mutex_};
  if (published_ != 0) return 0;
  slot_of(self_)->wait.write(wait.key, now(), wait.activity);
  if (recorder_ != nullptr)
    recorder_->publish_wait(wait.activity, wait.ranks.empty() ? 0 : wait.key, wait.ranks);
  return published_ = ++last_number_;
}

void NodeBoard::clear(std::uint64_t number) {
  const std::lock_guard lock{mutex_};
  if (number == 0 || number != published_) return;
  published_ = 0;
  slot_of(self_)->wait.clear();
  if (recorder_ != nullptr) recorder_->clear_wait();
}

void NodeBoard::leave(Presence how, const std::string& reason) {
  BoardSlot& slot = *slot_of(self_);
  // A child process after fork() must not speak for this rank.
  if (slot.presence != Presence::open || ::getpid() != identity_.process) return;
  if (!reason.empty()) slot.reason.write(0, now(), reason);
  slot.presence = how;
  if (recorder_ != nullptr) recorder_->leave(recorded(how), reason);
  OpenBoards::instance().remove(*this);
  close_descriptor();
}

bool NodeBoard::is_open() const { return slot_of(self_)->presence == Presence::open; }

void NodeBoard::close_descriptor() noexcept {
  if (const int descriptor = std::exchange(descriptor_, -1); descriptor >= 0) ::close(descriptor);
}

std::uint32_t NodeBoard::label(std::string_view name) {
  const std::lock_guard lock{mutex_};
  BoardSlot& slot = *slot_of(self_);
  const std::uint32_t count = slot.label_count;
  std::array<char, BoardSlot::label_bytes> bytes{};
  std::memcpy(bytes.data(), name.data(), std::min(name.size(), bytes.size() - 1));
  for (std::uint32_t i = 0; i < count; ++i)
    if (slot.label[i] == bytes) return i;
  if (count == BoardSlot::labels) return count;  // no place: the name stays unknown
  slot.label[count] = bytes;
  slot.label_count.store(count + 1, std::memory_order_release);
  return count;
}

std::string NodeBoard::label_text(std::size_t slot, std::size_t label) const {
  const BoardSlot& named = *slot_at(memory_, slot);
  if (label >= named.label_count.load(std::memory_order_acquire)) return "a group";
  return named.label[label].data();
}

bool NodeBoard::is_locked(std::size_t slot) const {
  struct flock lock = lock_of(slot);
  return descriptor_ < 0 || ::fcntl(descriptor_, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool NodeBoard::has_ended(std::size_t index) const {
  const BoardSlot& slot = *slot_at(memory_, index);
  if (slot.has_lock && !is_locked(index)) return slot.presence == Presence::open;
  // A child that the rank has forked may hold the lock for it.
  return identity_.pid_namespace != 0 && slot.pid_namespace == identity_.pid_namespace &&
         ::kill(static_cast<pid_t>(slot.process), 0) != 0 && errno == ESRCH &&
         slot.presence == Presence::open;
}

bool NodeBoard::has_failed(Rank rank) const {
  const BoardSlot* slot = slot_of(rank);
  if (slot == nullptr || rank == self_) return false;
  if (slot->presence == Presence::failed) return true;
  return slot->presence == Presence::open &&
         has_ended(static_cast<std::size_t>(slot - slot_at(memory_, 0)));
}

std::optional<RankActivity> NodeBoard::call_of(const BoardSlot& slot) const {
  const std::uint64_t sequence = slot.call.sequence.load(std::memory_order_acquire);
  if (sequence % 2 == 0) return std::nullopt;
  const std::uint64_t what = slot.call.what;
  const std::uint64_t number = slot.call.number;
  const std::uint64_t seen = slot.call.seen;
  const std::int64_t since = slot.call.seen_since;
  if (slot.call.sequence.load(std::memory_order_acquire) != sequence)
    return RankActivity{.kind = RankActivity::Kind::in_call, .text = "calls that change quickly"};
  const std::string name =
      label_text(static_cast<std::size_t>(&slot - slot_at(memory_, 0)), what >> 8);
  const auto operation = static_cast<Operation>(what & 0xff);
  return RankActivity{
      .kind = RankActivity::Kind::in_call,
      .text = fmt::format("{}.{}{}", name, to_string(operation), which_call(operation, number)),
      .seconds = seen == sequence ? static_cast<double>(now() - since) * 1e-9 : 0.0};
}

std::optional<RankActivity> NodeBoard::look(Rank rank) const {
  using Kind = RankActivity::Kind;
  const BoardSlot* slot = slot_of(rank);
  if (slot == nullptr) return std::nullopt;
  switch (slot->presence) {
    case Presence::none:
      return RankActivity{};
    case Presence::closed:
      return RankActivity{.kind = Kind::closed};
    case Presence::destroyed:
      return RankActivity{.kind = Kind::destroyed};
    case Presence::failed: {
      const auto reason = slot->reason.read();
      return RankActivity{.kind = Kind::failed, .text = reason ? reason->text : ""};
    }
    case Presence::open:
      break;
  }
  if (rank != self_ && has_ended(static_cast<std::size_t>(slot - slot_at(memory_, 0))))
    return RankActivity{.kind = Kind::ended};
  const ProcessState state =
      state_of(identity_of(static_cast<std::size_t>(slot - slot_at(memory_, 0))), identity_);
  if (state == ProcessState::ended) return RankActivity{.kind = Kind::ended};
  if (state == ProcessState::stopped) return RankActivity{.kind = Kind::stopped};
  if (const auto wait = slot->wait.read())
    return RankActivity{.kind = Kind::waits,
                        .key = wait->key,
                        .text = wait->text,
                        .seconds = static_cast<double>(now() - wait->since) * 1e-9};
  if (auto call = call_of(*slot)) return call;
  if (state == ProcessState::unknown) return RankActivity{};
  return RankActivity{.kind = Kind::outside};
}

bool NodeBoard::claim_end_report(Rank rank) const {
  BoardSlot* slot = slot_of(rank);
  return slot != nullptr && !slot->is_end_reported.exchange(true);
}

bool NodeBoard::claim_stall_report(std::int64_t since) const {
  auto& last = reinterpret_cast<BoardHeader*>(memory_)->last_stall_report;
  std::int64_t before = last;
  return before < since && last.compare_exchange_strong(before, now());
}

double NodeBoard::watch_call() {
  if (recorder_ != nullptr) recorder_->stamp();
  const std::uint64_t sequence = own_call_->sequence.load(std::memory_order_relaxed);
  if (sequence % 2 == 0) return 0;
  const std::int64_t time = now();
  if (own_call_->seen != sequence) {
    own_call_->seen_since = time;
    own_call_->seen = sequence;
  }
  return static_cast<double>(time - own_call_->seen_since) * 1e-9;
}

}  // namespace rankmesh::detail
