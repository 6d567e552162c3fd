// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rankmesh::shm {
namespace {

// The bytes that the ring carries of a message.
std::size_t payload_bytes(const Envelope& envelope) {
  const std::size_t bytes = envelope.bytes();
  return Ring::carries(bytes) ? bytes : 0;
}

void copy_payload(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes != 0 && to != nullptr) std::memcpy(to, from, bytes);
}

}  // namespace

Messages::Messages(const std::vector<Ring>& to, const std::vector<Ring>& from)
    : out_(to.size()), in_(from.size()) {
  for (std::size_t k = 0; k < to.size(); ++k) out_[k].ring = to[k];
  for (std::size_t k = 0; k < from.size(); ++k) in_[k].ring = from[k];
}

// Whether the memory of the next message may be written. It belongs to earlier messages, which the
// receiver must have taken.
bool Messages::has_space(Outgoing& out, std::size_t bytes) {
  const std::uint64_t ahead = Ring::ahead_of(bytes);
  if (out.next - out.taken <= ahead) return true;
  out.taken = out.ring.taken().load(std::memory_order_acquire);
  return out.next - out.taken <= ahead;
}

void Messages::put(Outgoing& out, const Message& message) {
  Entry& entry = out.ring.entry(out.next);
  entry.envelope = message.envelope;
  const std::size_t bytes = payload_bytes(message.envelope);
  copy_payload(out.ring.payload(out.next, bytes), message.source, bytes);
  // Release: whoever sees the number sees the envelope and the payload.
  entry.number.store(out.next++, std::memory_order_release);
}

bool Messages::try_send(const Message& message) {
  Outgoing& out = out_[message.peer];
  if (!out.queue.empty() || has_given_up_ || !has_space(out, message.envelope.bytes()))
    return false;
  put(out, message);
  return true;
}

bool Messages::is_there(const Incoming& in) {
  return in.ring.entry(in.next).number.load(std::memory_order_acquire) == in.next;
}

void Messages::take(Incoming& in, std::byte* to, std::size_t bytes) {
  copy_payload(to, in.ring.payload(in.next, bytes), bytes);
  // Release: the sender may overwrite what this member has read.
  in.ring.taken().store(in.next++, std::memory_order_release);
}

bool Messages::try_receive(Message& message) {
  Incoming& in = in_[message.peer];
  if (!is_first(message.peer) || !is_there(in)) return false;
  const Envelope envelope = in.ring.entry(in.next).envelope;
  if (envelope.tag != message.envelope.tag || !envelope.agrees_with(message.envelope) ||
      has_given_up_)
    return false;
  take(in, message.target, payload_bytes(envelope));
  return message.is_complete = true;
}

void Messages::begin_send(Message& message) {
  if (has_given_up_) return;
  Outgoing& out = out_[message.peer];
  out.queue.push_back(&message);
  push(out);
}

// Sends as many messages as there is space for.
void Messages::push(Outgoing& out) {
  while (!out.queue.empty() && has_space(out, out.queue.front()->envelope.bytes())) {
    put(out, *out.queue.front());
    out.queue.front()->is_complete = true;
    out.queue.pop_front();
  }
}

void Messages::begin_receive(Message& message) {
  if (has_given_up_) return;
  Incoming& in = in_[message.peer];
  const auto early = std::ranges::find_if(
      in.early, [&](const Early& e) { return e.envelope.tag == message.envelope.tag; });
  if (early == in.early.end()) {
    in.receives.push_back(&message);
    return pull(in, false);
  }
  end_receive(message, early->envelope);
  if (!message.wrong) copy_payload(message.target, early->bytes.data(), early->bytes.size());
  in.early.erase(early);
}

void Messages::end_receive(Message& receive, const Envelope& envelope) {
  receive.is_complete = true;
  if (receive.envelope.agrees_with(envelope)) return;
  receive.wrong = envelope;
  if (Ring::carries(envelope.bytes()) == receive.is_large() && !crossing_)
    crossing_ = Crossing{receive.peer, envelope, receive.envelope};
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

// Takes the next message, for the receive that wants it or for a later one.
void Messages::take_next(Incoming& in) {
  const Envelope envelope = in.ring.entry(in.next).envelope;
  const std::size_t bytes = payload_bytes(envelope);
  Message* const receive = wanted_by(in, envelope);
  if (receive == nullptr) {
    Early& early = in.early.emplace_back(Early{envelope, std::vector<std::byte>(bytes)});
    return take(in, early.bytes.data(), bytes);
  }
  end_receive(*receive, envelope);
  take(in, receive->wrong ? nullptr : receive->target, bytes);
}

void Messages::pull(Incoming& in, bool all) {
  while ((all || !in.receives.empty()) && is_there(in)) take_next(in);
}

void Messages::advance() {
  if (has_given_up_) return;
  for (Outgoing& out : out_)
    if (!out.queue.empty()) push(out);
  for (Incoming& in : in_) pull(in, false);
}

void Messages::make_space() {
  if (has_given_up_) return;
  for (Incoming& in : in_) pull(in, true);
}

bool Messages::is_first(std::size_t peer) const {
  return in_[peer].early.empty() && in_[peer].receives.empty();
}

bool Messages::cancel(Message& message) {
  return std::erase(in_[message.peer].receives, &message) != 0;
}

void Messages::put_back(const Message& receive) {
  in_[receive.peer].early.push_front({receive.wrong.value_or(receive.envelope), {}});
}

void Messages::give_up() {
  has_given_up_ = true;
  for (Outgoing& out : out_) out.queue.clear();
  for (Incoming& in : in_) {
    in.receives.clear();
    in.early.clear();
  }
}

std::optional<std::int64_t> Messages::arrived(std::size_t from, std::int32_t tag) {
  if (has_given_up_) return std::nullopt;
  Incoming& in = in_[from];
  pull(in, true);
  const auto found =
      std::ranges::find_if(in.early, [&](const Early& e) { return e.envelope.tag == tag; });
  if (found == in.early.end()) return std::nullopt;
  return static_cast<std::int64_t>(found->envelope.bytes());
}

}  // namespace rankmesh::shm
