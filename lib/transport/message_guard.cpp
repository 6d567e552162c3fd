// SPDX-License-Identifier: BSD-3-Clause
#include "detail/message_guard.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/detail/copy_of_error.hpp"
#include "detail/call_errors.hpp"
#include "detail/group_messages.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// NCCL matches messages only by their order, so messages on device memory have no tag.
constexpr std::int64_t no_tag = -1;

// The value of MessageHeader::receives with which a member takes back a receive.
constexpr std::uint8_t takes_back = 2;

}  // namespace

// What one end of a message tells the other end about it.
struct MessageGuard::MessageHeader {
  std::uint64_t mark = 0;
  std::uint8_t operation = 0;
  std::uint8_t type = 0;
  std::uint8_t receives = 0;  // 1 if this end receives, 2 if it has taken back a receive
  std::uint8_t on_device = 0;
  std::uint32_t name_index = 0;
  std::int64_t tag = 0;
  std::int64_t count = 0;
  std::uint64_t number = 0;  // of the receive among those of this end
};

// One message of a call.
struct MessageGuard::Half {
  int peer = 0;
  MessageHeader own;
  std::optional<MessageHeader> theirs;

  // Whether MPI or NCCL could match both messages.
  [[nodiscard]] bool is_like(int other_peer, const MessageHeader& other,
                             bool same_direction) const {
    return peer == other_peer && (own.receives == other.receives) == same_direction &&
           own.tag == other.tag && own.on_device == other.on_device;
  }
};

struct MessageGuard::Arrived {
  int from;
  MessageHeader header;
};

// A message that is compared, or both messages of a send_recv.
struct MessageGuard::Compared {
  std::vector<Half> halves;
  Carry carry;
  bool is_complete = false;
  std::exception_ptr failure;

  [[nodiscard]] bool is_matched() const {
    return std::ranges::all_of(halves, [](const Half& h) { return h.theirs.has_value(); });
  }
};

MessageGuard::MessageGuard(const mpi::CommunicatorView& comm, GroupMembers members)
    : comm_{comm}, members_{std::move(members)} {}

MessageGuard::~MessageGuard() = default;

class MessageGuard::PendingMatch final : public Pending {
 public:
  PendingMatch(MessageGuard& guard, std::shared_ptr<Compared> compared)
      : guard_{guard}, compared_{std::move(compared)} {}
  ~PendingMatch() override { guard_.forget(*compared_); }
  bool test() override { return was_cancelled_ || guard_.test(*compared_); }
  void cancel() override { was_cancelled_ = guard_.withdraw(*compared_); }
  [[nodiscard]] bool was_cancelled() const override { return was_cancelled_; }

 private:
  MessageGuard& guard_;
  std::shared_ptr<Compared> compared_;
  bool was_cancelled_ = false;
};

bool MessageGuard::meet(const Call& call, bool, Waiter& waiter) {
  const std::shared_ptr<Compared> compared = begin(call, {});
  try {
    waiter.finish(call, 0, std::make_unique<PendingMatch>(*this, compared));
  } catch (...) {
    forget(*compared);
    throw;
  }
  return true;
}

std::unique_ptr<Pending> MessageGuard::start_comparison(const Call& call, Carry carry) {
  return std::make_unique<PendingMatch>(*this, begin(call, std::move(carry)));
}

// Sends the headers of a call. Local; the call may be destroyed afterwards. The message is carried
// when both ends are equal, in the order of the calls.
std::shared_ptr<MessageGuard::Compared> MessageGuard::begin(const Call& call, Carry carry) {
  mpi::require_not_finalised();
  auto added = std::make_shared<Compared>();
  added->carry = std::move(carry);
  const auto add = [&](RankInGroup peer, const auto& buffer, bool receives) {
    if (peer.value() == comm_.rank()) return;  // a message to itself needs no comparison
    const bool on_device = buffer.kind == MemoryKind::device;
    MessageHeader header;
    header.mark = members_.key.mark();
    header.operation = static_cast<std::uint8_t>(call.operation);
    header.type = static_cast<std::uint8_t>(buffer.type);
    header.receives = receives ? 1 : 0;
    header.on_device = on_device ? 1 : 0;
    header.name_index = call.name_index;
    header.tag = on_device ? no_tag : call.tag;
    header.count = buffer.count;
    if (receives) header.number = ++receives_;
    const int to = static_cast<int>(peer.value());
    send(to, header);
    added->halves.push_back({to, header, std::nullopt});
  };
  if (call.operation != Operation::recv) add(call.destination, call.in, false);
  if (call.operation != Operation::send) add(call.source, call.out, true);
  waiting_.push_back(added);
  advance();
  return added;
}

void MessageGuard::send(int member, const MessageHeader& header) const {
  send_and_forget(comm_, member, members_.key.header_tag(), header);
}

void MessageGuard::receive() {
  while (const auto received = receive_of_group<MessageHeader>(comm_, members_.key.header_tag(),
                                                               members_.key.mark())) {
    const Arrived arrived{received->from, received->message};
    if (arrived.header.receives == takes_back)
      take_back(arrived);
    else if (!is_withdrawn(arrived))
      arrived_.push_back(arrived);
  }
}

// Removes the header of a receive that its member has taken back. If a message of this member was
// already compared with it, the next receive of the same kind gets that message.
void MessageGuard::take_back(const Arrived& withdrawal) {
  const auto is_receive = [&](const Arrived& a) {
    return a.from == withdrawal.from && a.header.receives == 1;
  };
  const auto same = std::ranges::find_if(arrived_, [&](const Arrived& a) {
    return is_receive(a) && a.header.number == withdrawal.header.number;
  });
  const auto next = std::ranges::find_if(arrived_, [&](const Arrived& a) {
    return is_receive(a) && a.header.on_device == 0 && a.header.tag == withdrawal.header.tag;
  });
  if (const auto found = same != arrived_.end() ? same : next; found != arrived_.end())
    arrived_.erase(found);
  else
    taken_back_.push_back(withdrawal);
}

bool MessageGuard::is_withdrawn(const Arrived& arrived) {
  if (taken_back_.empty() || arrived.header.receives != 1) return false;
  const auto found = std::ranges::find_if(taken_back_, [&](const Arrived& t) {
    return t.from == arrived.from && arrived.header.on_device == 0 &&
           t.header.tag == arrived.header.tag;
  });
  if (found == taken_back_.end()) return false;
  taken_back_.erase(found);
  return true;
}

// Takes back a receive whose sender has not called send, and forgets it. Returns false if both ends
// were compared, so that the message will arrive, or if the comparison has failed.
bool MessageGuard::withdraw(const Compared& compared) {
  if (compared.halves.size() != 1 ||
      compared.halves.front().own.operation != static_cast<std::uint8_t>(Operation::recv))
    return false;
  advance();
  if (compared.is_complete || compared.failure != nullptr || compared.is_matched()) return false;
  if (!is_leaving_) {
    MessageHeader header = compared.halves.front().own;
    header.receives = takes_back;
    send(compared.halves.front().peer, header);
  }
  forget(compared);
  return true;
}

// Gives each message the first header that fits, in the order of the calls.
void MessageGuard::match() {
  for (const auto& compared : waiting_)
    for (Half& half : compared->halves) {
      if (half.theirs) continue;
      const auto fits = [&](const Arrived& a) { return half.is_like(a.from, a.header, false); };
      const auto found = std::ranges::find_if(arrived_, fits);
      if (found == arrived_.end()) continue;
      half.theirs = found->header;
      arrived_.erase(found);
      try {
        compare(half);
      } catch (const MismatchError&) {
        compared->failure = std::current_exception();
      }
    }
}

// MPI matches messages in the order in which they are started, so a message must not be started
// before an earlier one of the same kind. A message that differs is never started at either end.
bool MessageGuard::may_start(const Compared& compared) const {
  if (compared.failure != nullptr || !compared.is_matched()) return false;
  for (const auto& earlier : waiting_) {
    if (earlier.get() == &compared) return true;
    if (earlier->failure != nullptr) continue;
    for (const Half& a : earlier->halves)
      for (const Half& b : compared.halves)
        if (a.is_like(b.peer, b.own, true)) return false;
  }
  return true;
}

// Continues the exchanges as far as the other members allow. Never waits and never throws.
void MessageGuard::advance() {
  try {
    receive();
    match();
  } catch (const Error&) {
    for (const auto& compared : waiting_) compared->failure = std::current_exception();
  }
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const std::shared_ptr<Compared> compared = *next;
    if (!may_start(*compared)) {
      ++next;
      continue;
    }
    next = waiting_.erase(next);
    compared->is_complete = true;
    try {
      if (compared->carry) compared->carry();
    } catch (const Error&) {
      compared->failure = std::current_exception();
    }
    compared->carry = nullptr;
  }
}

std::optional<std::int64_t> MessageGuard::arrived(RankInGroup from, int tag) {
  advance();
  throw_if_ended();
  const auto fits = [&](const Arrived& a) {
    return a.from == from.value() && a.header.receives == 0 && a.header.on_device == 0 &&
           a.header.tag == tag;
  };
  const auto found = std::ranges::find_if(arrived_, fits);
  if (found == arrived_.end()) return std::nullopt;
  const auto type = static_cast<DataType>(found->header.type);
  return found->header.count * static_cast<std::int64_t>(size_of(type));
}

bool MessageGuard::test(const Compared& compared) {
  if (!compared.is_complete) advance();
  if (compared.failure != nullptr) {
    const std::exception_ptr failure = compared.failure;
    forget(compared);
    std::rethrow_exception(failure);
  }
  if (compared.is_complete) return true;
  throw_if_ended();
  return false;
}

void MessageGuard::throw_if_ended() {
  for (const auto& compared : waiting_)
    if (compared->failure != nullptr) {
      const std::exception_ptr failure = compared->failure;  // the entry may end here
      std::rethrow_exception(failure);
    }
}

void MessageGuard::give_up(const Error& why) {
  for (const auto& compared : waiting_)
    if (compared->failure == nullptr) compared->failure = copy_of(why);
  waiting_.clear();
}

void MessageGuard::forget(const Compared& compared) {
  waiting_.remove_if([&](const auto& other) { return other.get() == &compared; });
}

// Both ends compose the same text: the sender comes first.
void MessageGuard::compare(const Half& half) const {
  const MessageHeader& theirs = *half.theirs;
  if (half.own.type == theirs.type && half.own.count == theirs.count) return;
  const int self = comm_.rank();
  const bool receives = half.own.receives != 0;
  const MessageHeader& sender = receives ? theirs : half.own;
  const MessageHeader& receiver = receives ? half.own : theirs;
  const int from = receives ? half.peer : self;
  const int to = receives ? self : half.peer;
  throw MessageMismatch{
      fmt::format("{}; {}", text_of(sender, from, to), text_of(receiver, to, from)), length_hint,
      false};
}

std::string MessageGuard::text_of(const MessageHeader& header, int member, int peer) const {
  const auto rank = [&](int k) { return members_.ranks.at(k); };
  const std::string tag =
      header.tag == no_tag ? ", device memory" : fmt::format(", tag {}", header.tag);
  return fmt::format("rank {}: {}.{}({} x {} {} rank {}{})", members_.names(rank(member)),
                     members_.name_of(header.name_index),
                     rankmesh::to_string(static_cast<Operation>(header.operation)), header.count,
                     rankmesh::to_string(static_cast<DataType>(header.type)),
                     header.receives != 0 ? "from" : "to", rank(peer).value(), tag);
}

}  // namespace rankmesh::detail
