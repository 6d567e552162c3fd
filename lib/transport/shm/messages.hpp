// SPDX-License-Identifier: BSD-3-Clause
// The protocol of messages between two members in shared memory. Like the engine of collectives, it
// knows neither MPI nor processes, and it never waits.
//
// Each ordered pair of members has a ring. A sender divides a message into parts, writes the
// payload of a part, and then the number of the part (release order). The receiver looks for the
// number (acquire order), takes the payload, and writes the number to its counter (release order),
// so that the sender may use the memory again. The parts of a message follow each other, and
// messages follow each other in the order in which they were sent.
//
// A receiver matches messages as MPI does: a message goes to the first receive from its source that
// has its tag and has no message yet. A message that no receive wants is copied to memory of the
// receiver when it stands in the way of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "transport/shm/ring.hpp"

namespace rankmesh::shm {

/// One half of a call: a message to another member, or one from another member. It must not move
/// until it is complete or forgotten.
struct Message {
  std::size_t peer = 0;
  Envelope envelope{};
  const std::byte* source = nullptr;  ///< what is sent; null for a receive
  std::byte* target = nullptr;        ///< where it is received
  bool is_complete = false;
  /// A receive: the envelope of the message, if it has another type or length. The receive is
  /// complete then, and its memory is unchanged.
  std::optional<Envelope> wrong{};

  [[nodiscard]] std::size_t bytes() const { return bytes_of(envelope); }
  [[nodiscard]] static std::size_t bytes_of(const Envelope& envelope) {
    return static_cast<std::size_t>(envelope.count) * size_of(static_cast<DataType>(envelope.type));
  }
};

/// The messages of one member of a group. Used by one thread at a time.
class Messages {
 public:
  /// @param to    the rings to all members, in group order.
  /// @param from  the rings from all members.
  Messages(std::vector<Ring> to, std::vector<Ring> from);

  /// Sends a message at once if it consists of a single part and there is space for it.
  [[nodiscard]] bool try_send(const Message& message);
  /// Receives the next message of a member at once, if it has arrived, consists of a single part,
  /// and no other receive or message comes before. Returns whether `message` is complete.
  [[nodiscard]] bool try_receive(Message& message);
  /// Returns whether a receive from this member would be the next one to get a message.
  [[nodiscard]] bool is_first(std::size_t peer) const;
  /// Returns whether something has come from a member that has not been taken.
  [[nodiscard]] bool has_part(std::size_t peer) const { return is_there(in_[peer]); }
  /// Begins a message, and makes progress. Messages to one member are sent in this order.
  void begin_send(Message& message);
  /// Begins a receive, and makes progress.
  void begin_receive(Message& message);
  /// Continues the messages that have begun as far as the other members allow.
  void advance();
  /// Takes what other members have sent out of their rings, even if no receive wants it. Otherwise
  /// members that send each other many messages could wait for each other.
  void make_space();
  /// Ends a receive to which no message has come. Returns false if one has.
  [[nodiscard]] bool cancel(Message& message);
  /// Forgets all messages; nothing goes on. For a group that has ended early, and for messages
  /// whose memory ends before they are complete.
  void give_up();
  /// Returns the size in bytes of the next message with this tag that has arrived and that no
  /// receive has taken.
  [[nodiscard]] std::optional<std::int64_t> arrived(std::size_t from, std::int32_t tag);

 private:
  // A message that has arrived before its receive.
  struct Early {
    Envelope envelope;
    std::vector<std::byte> bytes;
    Message* receive = nullptr;  // the receive that has claimed it while parts were missing
    bool is_complete = false;
  };
  struct Outgoing {
    Ring ring;
    std::uint64_t next = 1;   // the number of the next part
    std::uint64_t taken = 0;  // as far as this member knows
    std::list<Message*> queue;
    std::size_t sent = 0;  // bytes of the first message of the queue
  };
  struct Incoming {
    Ring ring;
    std::uint64_t next = 1;
    std::list<Message*> receives;  // without a message
    std::list<Early> early;
    // The message that is arriving: `left` bytes are missing. They go to `target`, or are dropped
    // if it is null.
    bool is_arriving = false;
    std::size_t left = 0;
    std::byte* target = nullptr;
    Message* receive = nullptr;
    Early* early_one = nullptr;
  };

  [[nodiscard]] static bool has_space(Outgoing& out, std::size_t bytes);
  static void put(Outgoing& out, const Envelope& envelope, const std::byte* from,
                  std::size_t bytes);
  static void push(Outgoing& out);
  [[nodiscard]] static bool is_there(const Incoming& in);
  static void take(Incoming& in, std::byte* to, std::size_t bytes);
  /// @param all  Also messages that no receive wants.
  static void pull(Incoming& in, bool all);
  static void begin_message(Incoming& in, const Envelope& envelope);
  static void end_message(Incoming& in);
  static void deliver(Early& early);

  std::vector<Outgoing> out_;
  std::vector<Incoming> in_;
  bool has_given_up_ = false;
};

}  // namespace rankmesh::shm
