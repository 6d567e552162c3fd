// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rankmesh::shm {
namespace {

bool agree(const Envelope& a, const Envelope& b) { return a.count == b.count && a.type == b.type; }

void copy_payload(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != nullptr) std::memcpy(to, from, bytes);
}

}  // namespace

Messages::Messages(std::vector<Ring> to, std::vector<Ring> from, Fetching fetching)
    : out_(to.size()), in_(from.size()), fetching_{std::move(fetching)} {
  for (std::size_t k = 0; k < to.size(); ++k) out_[k].ring = to[k];
  for (std::size_t k = 0; k < from.size(); ++k) in_[k].ring = from[k];
}

// Whether the memory of the next part may be written. It belongs to an earlier part, which the
// receiver must have taken. A part without a place also has to wait for the part that had its line.
bool Messages::has_space(Outgoing& out, std::size_t bytes) {
  const std::uint64_t ahead = Ring::ahead_of(bytes);
  if (out.next - out.taken <= ahead) return true;
  out.taken = out.ring.taken().load(std::memory_order_acquire);
  return out.next - out.taken <= ahead;
}

void Messages::put(Outgoing& out, const Envelope& envelope, const std::byte* from,
                   std::size_t bytes) {
  Part& part = out.ring.part(out.next);
  part.envelope = envelope;
  copy_payload(out.ring.payload(out.next, bytes), from, bytes);
  // Release: whoever sees the number sees the envelope and the payload.
  part.number.store(out.next++, std::memory_order_release);
}

bool Messages::try_send(const Message& message) {
  Outgoing& out = out_[message.peer];
  const std::size_t bytes = message.bytes();
  if (bytes > Ring::place_bytes || is_offered(message) || !out.queue.empty() || has_given_up_ ||
      !has_space(out, bytes))
    return false;
  put(out, message.envelope, message.source, bytes);
  return true;
}

bool Messages::is_there(const Incoming& in) {
  return in.ring.part(in.next).number.load(std::memory_order_acquire) == in.next;
}

void Messages::take(Incoming& in, std::byte* to, std::size_t bytes) {
  copy_payload(to, in.ring.payload(in.next, bytes), bytes);
  // Release: the sender may overwrite what this member has read.
  in.ring.taken().store(in.next++, std::memory_order_release);
}

bool Messages::try_receive(Message& message) {
  Incoming& in = in_[message.peer];
  if (!is_first(message.peer) || !is_there(in)) return false;
  const Envelope envelope = in.ring.part(in.next).envelope;
  const std::size_t bytes = message.bytes();
  if (envelope.tag != message.envelope.tag || !agree(envelope, message.envelope) ||
      bytes > Ring::place_bytes || envelope.is_offer != 0 || has_given_up_)
    return false;
  take(in, message.target, bytes);
  return message.is_complete = true;
}

void Messages::begin_send(Message& message) {
  if (has_given_up_) return;
  Outgoing& out = out_[message.peer];
  out.queue.push_back(&message);
  push(out);
}

// Publishes where a message lies. Its part may not be mistaken for an earlier offer that has not
// been fetched.
bool Messages::offer(Outgoing& out, Message& message) {
  const auto address = reinterpret_cast<std::uint64_t>(message.source);
  const auto is_same = [&](const auto& other) {
    return other.first % Ring::parts == out.next % Ring::parts;
  };
  if (!has_space(out, sizeof address) || std::ranges::any_of(out.offers, is_same)) return false;
  out.offers.emplace_back(out.next, &message);
  Envelope envelope = message.envelope;
  envelope.is_offer = 1;
  put(out, envelope, reinterpret_cast<const std::byte*>(&address), sizeof address);
  return true;
}

// Completes the messages that their receiver has read.
void Messages::look_for_fetched(Outgoing& out) {
  std::erase_if(out.offers, [&](const auto& offer) {
    // Acquire: the receiver has read the elements before the program changes them.
    if (out.ring.fetched(offer.first).load(std::memory_order_acquire) != offer.first) return false;
    offer.second->is_complete = true;
    return true;
  });
}

// Sends as many parts as there is space for.
void Messages::push(Outgoing& out) {
  while (!out.queue.empty()) {
    Message& message = *out.queue.front();
    if (is_offered(message)) {
      if (!offer(out, message)) return;
      out.queue.pop_front();
      continue;
    }
    const std::size_t all = message.bytes();
    const std::size_t bytes = Ring::payload_bytes(all - out.sent);
    if (!has_space(out, bytes)) return;
    put(out, message.envelope, message.source + out.sent, bytes);
    out.sent += bytes;
    if (out.sent < all) continue;
    out.queue.pop_front();
    out.sent = 0;
    message.is_complete = true;
  }
}

void Messages::begin_receive(Message& message) {
  if (has_given_up_) return;
  Incoming& in = in_[message.peer];
  const auto early = std::ranges::find_if(in.early, [&](const Early& e) {
    return e.receive == nullptr && e.envelope.tag == message.envelope.tag;
  });
  if (early == in.early.end()) {
    in.receives.push_back(&message);
  } else {
    early->receive = &message;
    if (early->offer != 0) {
      const Early taken = *early;
      in.early.erase(early);
      fetch(in, message, taken.envelope, taken.offer, taken.address);
    } else if (early->is_complete) {
      deliver(*early);
      in.early.erase(early);
    }
  }
  pull(in, false);
}

// Completes the receive that has claimed a message.
void Messages::deliver(Early& early) {
  Message& receive = *early.receive;
  if (agree(early.envelope, receive.envelope))
    copy_payload(receive.target, early.bytes.data(), early.bytes.size());
  else
    receive.wrong = early.envelope;
  receive.is_complete = true;
}

// Returns the first receive that a message fits, and removes it; null if there is none.
Message* Messages::wanted_by(Incoming& in, const Envelope& envelope) {
  const auto wanted = std::ranges::find_if(
      in.receives, [&](const Message* m) { return m->envelope.tag == envelope.tag; });
  if (wanted == in.receives.end()) return nullptr;
  Message* const message = *wanted;
  in.receives.erase(wanted);
  return message;
}

// Reads a message that is offered, unless the receive expects another one, and tells the sender.
void Messages::fetch(Incoming& in, Message& receive, const Envelope& envelope, std::uint64_t number,
                     std::uint64_t address) {
  if (agree(envelope, receive.envelope)) {
    const int code = fetching_.reader->read(fetching_.locals[receive.peer], address, receive.target,
                                            receive.bytes());
    // Acquire: the sender has said that it gives up or leaves before it has changed its buffer.
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool has_ended = fetching_.has_ended && fetching_.has_ended(receive.peer);
    if (code != 0 || has_ended) {
      failure_ = FailedRead{receive.peer, has_ended ? 0 : code};
      return;  // the receive never ends
    }
  } else {
    receive.wrong = envelope;
  }
  receive.is_complete = true;
  // Release: the sender may change the elements that this member has read.
  in.ring.fetched(number).store(number, std::memory_order_release);
}

// Takes a part that is an offer.
void Messages::take_offer(Incoming& in) {
  const std::uint64_t number = in.next;
  const Envelope envelope = in.ring.part(number).envelope;
  std::uint64_t address = 0;
  take(in, reinterpret_cast<std::byte*>(&address), sizeof address);
  if (Message* const receive = wanted_by(in, envelope))
    fetch(in, *receive, envelope, number, address);
  else
    in.early.push_back({.envelope = envelope, .bytes = {}, .offer = number, .address = address});
}

// Chooses where a message goes whose first part has come.
void Messages::begin_message(Incoming& in, const Envelope& envelope) {
  in.is_arriving = true;
  in.left = Message::bytes_of(envelope);
  in.target = nullptr;
  in.early_one = nullptr;
  in.receive = wanted_by(in, envelope);
  if (in.receive == nullptr) {
    Early& early = in.early.emplace_back(Early{.envelope = envelope, .bytes = {}});
    early.bytes.resize(in.left);
    in.early_one = &early;
    in.target = early.bytes.data();
    return;
  }
  if (agree(in.receive->envelope, envelope))
    in.target = in.receive->target;
  else
    in.receive->wrong = envelope;
}

void Messages::end_message(Incoming& in) {
  in.is_arriving = false;
  if (in.receive != nullptr) in.receive->is_complete = true;
  if (in.early_one == nullptr) return;
  in.early_one->is_complete = true;
  if (in.early_one->receive == nullptr) return;
  deliver(*in.early_one);
  std::erase_if(in.early, [&](const Early& e) { return &e == in.early_one; });
}

// Takes parts as long as they are wanted.
void Messages::pull(Incoming& in, bool all) {
  while ((all || in.is_arriving || !in.receives.empty()) && is_there(in)) {
    if (!in.is_arriving && in.ring.part(in.next).envelope.is_offer != 0) {
      take_offer(in);
      if (failure_) return;
      continue;
    }
    if (!in.is_arriving) begin_message(in, in.ring.part(in.next).envelope);
    const std::size_t bytes = Ring::payload_bytes(in.left);
    take(in, in.target, bytes);
    if (in.target != nullptr) in.target += bytes;
    in.left -= bytes;
    if (in.left == 0) end_message(in);
  }
}

void Messages::advance() {
  if (has_given_up_ || failure_) return;
  for (Outgoing& out : out_) {
    if (!out.offers.empty()) look_for_fetched(out);
    if (!out.queue.empty()) push(out);
  }
  for (Incoming& in : in_)
    if (in.is_arriving || !in.receives.empty()) pull(in, false);
}

void Messages::make_space() {
  if (has_given_up_ || failure_) return;
  for (Incoming& in : in_) pull(in, true);
}

bool Messages::is_first(std::size_t peer) const {
  const Incoming& in = in_[peer];
  return !in.is_arriving && in.early.empty() && in.receives.empty();
}

bool Messages::cancel(Message& message) {
  return std::erase(in_[message.peer].receives, &message) != 0;
}

void Messages::give_up() {
  has_given_up_ = true;
  for (Outgoing& out : out_) {
    out.queue.clear();
    out.offers.clear();
  }
  for (Incoming& in : in_) {
    in.receives.clear();
    in.early.clear();
    in.is_arriving = false;
  }
}

std::optional<std::int64_t> Messages::arrived(std::size_t from, std::int32_t tag) {
  if (has_given_up_) return std::nullopt;
  Incoming& in = in_[from];
  pull(in, true);
  const auto found = std::ranges::find_if(
      in.early, [&](const Early& e) { return e.receive == nullptr && e.envelope.tag == tag; });
  if (found == in.early.end()) return std::nullopt;
  return static_cast<std::int64_t>(Message::bytes_of(found->envelope));
}

}  // namespace rankmesh::shm
