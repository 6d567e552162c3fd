// SPDX-License-Identifier: BSD-3-Clause
// The protocol of messages between two members in shared memory. Like the engine of collectives, it
// knows neither MPI nor processes, and it never waits.
//
// Each ordered pair of members has a ring. A sender writes the envelope and the payload of a
// message, and then the number of the message (release order). The receiver looks for the number
// (acquire order), takes the payload, and writes the number to its counter (release order), so that
// the sender may use the memory again.
//
// If a message is too large for the ring, the ring carries only its envelope, which announces the
// message; another transport carries its elements. Therefore the receiver sees all messages of a
// sender in one order, and compares the type and the length of each of them.
//
// A receiver matches messages as MPI does: a message goes to the first receive from its source that
// has its tag and has no message yet. If a message matches no receive, and blocks another message,
// it is copied to memory of the receiver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "transport/shm/inbox.hpp"

namespace rankmesh::shm {

/// A message that one end passes to the ring and the other end to MPI, because the length at one
/// end is larger than the ring carries. The part that remains in MPI could be matched with another
/// receive.
struct Crossing {
  std::size_t peer;
  Envelope sent, expected;
};

/// The messages of one member of a group. Used by one thread at a time.
class Messages {
 public:
  /// @param to    the rings to all members, in group order.
  /// @param from  the rings from all members.
  Messages(const std::vector<Ring>& to, const std::vector<Ring>& from);

  /// Sends a message at once if there is space for it and no other message waits for space.
  [[nodiscard]] bool try_send(const Message& message);
  /// Receives the next message of a member at once, if it has arrived, fits, and no other receive
  /// or message comes before. Returns whether `message` is complete.
  [[nodiscard]] bool try_receive(Message& message);
  /// Returns whether a receive from this member would be the next one to get a message.
  [[nodiscard]] bool is_first(std::size_t peer) const;
  /// Returns whether an entry of a member has arrived and has not been taken.
  [[nodiscard]] bool has_entry(std::size_t peer) const { return is_there(in_[peer]); }
  /// Begins a message, and makes progress. Messages to one member are sent in this order.
  void begin_send(Message& message);
  /// Begins a receive, and makes progress.
  void begin_receive(Message& message);
  /// Returns the first crossing that this member has found, if any.
  [[nodiscard]] const std::optional<Crossing>& crossing() const { return crossing_; }
  /// Continues the messages that have begun as far as the other members allow.
  void advance();
  /// Takes messages of other members out of their rings, even if no receive matches them. Otherwise
  /// members that send many messages to each other could wait for each other.
  void make_space();
  /// Ends a receive for which no message has arrived. Returns false if a message has arrived.
  [[nodiscard]] bool cancel(Message& message);
  /// Puts the announcement back that a receive had which was cancelled.
  void put_back(const Message& receive);
  /// Forgets all messages; no message continues. For a group that has ended early, and for messages
  /// whose memory is freed before they are complete.
  void give_up();
  /// Returns the size in bytes of the next message with this tag that has arrived and that no
  /// receive has taken.
  [[nodiscard]] std::optional<std::int64_t> arrived(std::size_t from, std::int32_t tag);

 private:
  struct Outgoing {
    Ring ring;
    std::uint64_t next = 1;      // the number of the next entry
    std::uint64_t taken = 0;     // as far as this member knows
    std::uint64_t position = 0;  // the end of all payloads so far, as if the ring had no end
    std::array<std::uint64_t, Ring::entries> ends{};  // the position after each entry
    std::deque<Message*> queue;                       // the messages for which there was no space
  };
  struct Incoming {
    Ring ring;
    std::uint64_t next = 1;
    Inbox inbox;
  };

  [[nodiscard]] static std::uint64_t next_position(const Outgoing& out, std::size_t bytes);
  [[nodiscard]] static bool has_space(Outgoing& out, std::size_t bytes);
  static void put(Outgoing& out, const Message& message);
  static void push(Outgoing& out);
  [[nodiscard]] static bool is_there(const Incoming& in);
  static void take(Incoming& in, std::byte* to, std::size_t bytes);
  /// @param all  Also messages that no receive wants.
  void pull(Incoming& in, bool all);
  void take_next(Incoming& in);
  /// Completes a receive.
  void end_receive(Message& receive, const Envelope& envelope);

  std::vector<Outgoing> out_;
  std::vector<Incoming> in_;
  std::optional<Crossing> crossing_;
  bool has_given_up_ = false;
};

}  // namespace rankmesh::shm
