// SPDX-License-Identifier: BSD-3-Clause
#include "transfer.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "common/settings.hpp"
#include "operation.hpp"

namespace fake {
namespace {

template <class Message>
struct Lane {  // what goes to, or comes from, one peer, in order
  std::deque<Message> waiting;
  std::size_t moved = 0;  // of the first
};

class Batch {
 public:
  Batch(Comm& comm, const std::vector<Outgoing>& sends, const std::vector<Incoming>& receives)
      : comm_(comm), out_(comm.sent.size()), in_(comm.sent.size()) {
    for (const Outgoing& send : sends)
      out_[static_cast<std::size_t>(send.peer)].waiting.push_back(send);
    for (const Incoming& receive : receives)
      in_[static_cast<std::size_t>(receive.peer)].waiting.push_back(receive);
    copy_to_myself();
  }

  // Moves what can move now; true when nothing is left to do.
  bool step() {
    // Broken on purpose: nothing is received before everything is sent.
    const bool may_receive = !broken("joint_progress") || all_sent();
    for (std::size_t peer = 0; peer < out_.size() && problem.ok(); ++peer) {
      while (!out_[peer].waiting.empty() && send_piece(static_cast<int>(peer), out_[peer])) {
      }
      if (!may_receive) continue;
      while (!in_[peer].waiting.empty() && receive_piece(static_cast<int>(peer), in_[peer])) {
      }
    }
    return !problem.ok() || unfinished().empty();
  }

  bool all_sent() const {
    return std::all_of(out_.begin(), out_.end(),
                       [](const auto& lane) { return lane.waiting.empty(); });
  }

  std::vector<int> unfinished() const {
    std::vector<int> peers;
    for (std::size_t peer = 0; peer < out_.size(); ++peer)
      if (!out_[peer].waiting.empty() || !in_[peer].waiting.empty())
        peers.push_back(static_cast<int>(peer));
    return peers;
  }

  Outcome problem;

 private:
  void copy_to_myself() {
    const auto me = static_cast<std::size_t>(comm_.seat.rank);
    auto& out = out_[me].waiting;
    auto& in = in_[me].waiting;
    for (; !out.empty() && !in.empty() && problem.ok(); out.pop_front(), in.pop_front()) {
      if (out.front().bytes != in.front().bytes)
        problem = failed(ncclInvalidUsage, "rank %d sends itself %zu bytes and receives %zu",
                         comm_.seat.rank, out.front().bytes, in.front().bytes);
      else if (in.front().bytes > 0 && in.front().data != out.front().data)
        std::memmove(in.front().data, out.front().data, in.front().bytes);
    }
    if (problem.ok() && (!out.empty() || !in.empty()))
      problem =
          failed(ncclInvalidUsage,
                 "rank %d has a send or receive with itself that nothing in the group matches",
                 comm_.seat.rank);
  }

  bool send_piece(int peer, Lane<Outgoing>& lane) {
    Channel& box = comm_.seat.segment.channel(comm_.seat.rank, peer);
    if (box.full != 0) return false;
    const Outgoing& message = lane.waiting.front();
    const std::size_t piece = std::min(chunk_bytes, message.bytes - lane.moved);
    if (piece > 0) std::memcpy(box.data, message.data + lane.moved, piece);
    box.bytes = static_cast<std::uint32_t>(piece);
    box.total = message.bytes;
    box.tag = message.label.tag;
    box.kind = message.label.kind;
    box.is_registered = message.label.is_registered;
    box.full = 1;
    comm_.seat.segment.ring(peer);
    lane.moved += piece;
    if (lane.moved == message.bytes) {
      lane.waiting.pop_front();
      lane.moved = 0;
    }
    return true;
  }

  bool receive_piece(int peer, Lane<Incoming>& lane) {
    Channel& box = comm_.seat.segment.channel(peer, comm_.seat.rank);
    if (box.full == 0) return false;
    const Incoming& message = lane.waiting.front();
    if (!fits(box, message)) return false;
    // The manual of NCCL, "User Buffer Registration": the behaviour is undefined if the memory of
    // a message is registered on one side only.
    const bool is_undefined =
        box.is_registered != message.label.is_registered && !broken("both_registered");
    if (is_undefined)
      std::memset(message.data + lane.moved, 0xA5, box.bytes);
    else if (box.bytes > 0)
      std::memcpy(message.data + lane.moved, box.data, box.bytes);
    lane.moved += box.bytes;
    box.full = 0;
    comm_.seat.segment.ring(peer);
    if (lane.moved == message.bytes) {
      lane.waiting.pop_front();
      lane.moved = 0;
    }
    return true;
  }

  bool fits(const Channel& box, const Incoming& message) {
    // Bytes are all that NCCL knows (p2pTaskAppend in enqueue.cc).
    const bool same = box.total == message.bytes && box.tag == message.label.tag &&
                      box.kind == message.label.kind;
    if (same) return true;
    if (broken("message_check") && box.total <= message.bytes) return true;
    problem = failed(ncclInvalidUsage,
                     "rank %d expects a message of %zu bytes from rank %d (%s, number %llu), but "
                     "it sent %llu bytes (%s, number %llu)",
                     comm_.seat.rank, message.bytes, message.peer, call_name(message.label.kind),
                     static_cast<unsigned long long>(message.label.tag),
                     static_cast<unsigned long long>(box.total), call_name(box.kind),
                     static_cast<unsigned long long>(box.tag));
    return false;
  }

  Comm& comm_;
  std::vector<Lane<Outgoing>> out_;
  std::vector<Lane<Incoming>> in_;
};

}  // namespace

Outcome exchange(Comm& comm, const std::string& what, const std::vector<Outgoing>& sends,
                 const std::vector<Incoming>& receives) {
  Batch batch(comm, sends, receives);
  if (!batch.problem.ok()) return batch.problem;
  const Outcome done = wait_for(
      comm.seat, what, [&] { return batch.step(); }, [&] { return batch.unfinished(); },
      OnTrouble::give_up, Over::memory);
  if (!done.ok() || batch.problem.ok()) return done;
  return hang(comm.seat, batch.problem.text);
}

}  // namespace fake
