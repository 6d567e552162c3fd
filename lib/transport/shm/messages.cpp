// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/messages.hpp"

#include <algorithm>
#include <cstring>

namespace rankmesh::shm {
namespace {

// The bytes that the ring carries of a message.
std::size_t payload_bytes(const Envelope& envelope) {
  const std::size_t bytes = envelope.bytes();
  return Ring::carries(bytes) ? bytes : 0;
}

// Copies in pieces of a size that the compiler does not know. Larger pieces, and pieces of a size
// that it knows, would be copied with string instructions, which may take four times as long if the
// other core has just used the memory.
void copy_payload(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to == nullptr) return;
  while (bytes != 0) {
    const std::size_t piece = std::min<std::size_t>(bytes, 4096);
    std::memcpy(to, from, piece);
    to += piece;
    from += piece;
    bytes -= piece;
  }
}

}  // namespace

Messages::Messages(const std::vector<Ring>& to, const std::vector<Ring>& from)
    : out_(to.size()), in_(from.size()) {
  for (std::size_t k = 0; k < to.size(); ++k) out_[k].ring = to[k];
  for (std::size_t k = 0; k < from.size(); ++k) in_[k].ring = from[k];
}

// Where the payload of the next message begins. It does not straddle the end of the ring.
std::uint64_t Messages::next_position(const Outgoing& out, std::size_t bytes) {
  if (bytes <= Ring::inline_payload) return out.position;
  const std::uint64_t begin = (out.position + line - 1) / line * line;
  const std::uint64_t left = Ring::payload_bytes - begin % Ring::payload_bytes;
  return bytes <= left ? begin : begin + left;
}

// Whether the memory of the next message may be written. It belongs to earlier messages, which the
// receiver must have taken.
bool Messages::has_space(Outgoing& out, std::size_t bytes) {
  const std::uint64_t end = next_position(out, bytes) + (bytes <= Ring::inline_payload ? 0 : bytes);
  const auto fits = [&] {
    return out.next - out.taken <= Ring::entries &&
           end - out.ends[out.taken % Ring::entries] <= Ring::payload_bytes;
  };
  if (fits()) return true;
  out.taken = out.ring.taken().load(std::memory_order_acquire);
  return fits();
}

void Messages::put(Outgoing& out, const Message& message) {
  RingEntry& entry = out.ring.entry(out.next);
  entry.envelope = message.envelope;
  const std::size_t bytes = payload_bytes(message.envelope);
  // If the receiver has taken all messages, the memory that was used last is reused, because it is
  // in the caches of both members.
  if (bytes > Ring::inline_payload &&
      out.ring.taken().load(std::memory_order_acquire) == out.next - 1)
    out.position =
        (out.position + Ring::payload_bytes - 1) / Ring::payload_bytes * Ring::payload_bytes;
  const std::uint64_t begin = next_position(out, bytes);
  entry.offset = begin % Ring::payload_bytes;
  out.position = bytes <= Ring::inline_payload ? begin : begin + bytes;
  out.ends[out.next % Ring::entries] = out.position;
  copy_payload(out.ring.payload(entry, bytes), message.source, bytes);
  // Release: a member that sees the number also sees the envelope and the payload.
  entry.number.store(out.next++, std::memory_order_release);
}

bool Messages::try_send(const Message& message) {
  Outgoing& out = out_[message.peer];
  if (!out.queue.empty() || has_given_up_ || !has_space(out, payload_bytes(message.envelope)))
    return false;
  put(out, message);
  return true;
}

bool Messages::is_there(const Incoming& in) {
  return in.ring.entry(in.next).number.load(std::memory_order_acquire) == in.next;
}

void Messages::take(Incoming& in, std::byte* to, std::size_t bytes) {
  copy_payload(to, in.ring.payload(in.ring.entry(in.next), bytes), bytes);
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
  while (!out.queue.empty() && has_space(out, payload_bytes(out.queue.front()->envelope))) {
    put(out, *out.queue.front());
    out.queue.front()->is_complete = true;
    out.queue.pop_front();
  }
}

void Messages::begin_receive(Message& message) {
  if (has_given_up_) return;
  Incoming& in = in_[message.peer];
  const auto early = in.inbox.take_early(message.envelope.tag);
  if (!early) {
    in.inbox.wait(message);
    return pull(in, false);
  }
  end_receive(message, early->envelope);
  if (!message.wrong) copy_payload(message.target, early->bytes.data(), early->bytes.size());
}

void Messages::end_receive(Message& receive, const Envelope& envelope) {
  if (receive.complete(envelope)) return;
  if (Ring::carries(envelope.bytes()) == receive.is_large() && !crossing_)
    crossing_ = Crossing{receive.peer, envelope, receive.envelope};
}

// Takes the next message, for the receive that matches it or for a later receive.
void Messages::take_next(Incoming& in) {
  const Envelope envelope = in.ring.entry(in.next).envelope;
  const std::size_t bytes = payload_bytes(envelope);
  Message* const receive = in.inbox.take_receive(envelope.tag);
  if (receive == nullptr) return take(in, in.inbox.keep(envelope, bytes).bytes.data(), bytes);
  end_receive(*receive, envelope);
  take(in, receive->wrong ? nullptr : receive->target, bytes);
}

void Messages::pull(Incoming& in, bool all) {
  while ((all || in.inbox.has_receives()) && is_there(in)) take_next(in);
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

bool Messages::is_first(std::size_t peer) const { return in_[peer].inbox.is_empty(); }

bool Messages::cancel(Message& message) { return in_[message.peer].inbox.cancel(message); }

void Messages::put_back(const Message& receive) {
  in_[receive.peer].inbox.put_back(receive.wrong.value_or(receive.envelope));
}

void Messages::give_up() {
  has_given_up_ = true;
  for (Outgoing& out : out_) out.queue.clear();
  for (Incoming& in : in_) in.inbox.clear();
}

std::optional<std::int64_t> Messages::arrived(std::size_t from, std::int32_t tag) {
  if (has_given_up_) return std::nullopt;
  Incoming& in = in_[from];
  pull(in, true);
  return in.inbox.arrived(tag);
}

}  // namespace rankmesh::shm
