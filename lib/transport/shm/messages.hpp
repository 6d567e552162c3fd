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
// If members can read each other's memory, a large message is a single part, an offer, with the
// address of the elements. The receiver reads them when it knows where they go, and then tells the
// sender, whose message is complete only then. Offers may be fetched in another order than that in
// which they were made.
//
// A receiver matches messages as MPI does: a message goes to the first receive from its source that
// has its tag and has no message yet. A message that no receive wants is copied to memory of the
// receiver when it stands in the way of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "transport/shm/direct.hpp"
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

/// How a member reads large messages where they lie.
struct Fetching {
  MemoryReader* reader = nullptr;      ///< null if the members do not read each other's memory
  std::vector<std::int32_t> locals{};  ///< the local rank of each member
  /// Returns whether a member may have changed a buffer that it has offered, because it has given
  /// up or has left.
  std::function<bool(std::size_t member)> has_ended{};
  /// From this size on messages are offered.
  std::size_t least_bytes = 32 << 10;
};

/// The messages of one member of a group. Used by one thread at a time.
class Messages {
 public:
  /// @param to    the rings to all members, in group order.
  /// @param from  the rings from all members.
  /// @param fetching  the same on all members, except for the functions.
  Messages(std::vector<Ring> to, std::vector<Ring> from, Fetching fetching = {});

  /// Returns the read of another member's memory that has failed, if any. Nothing goes on after it.
  [[nodiscard]] const std::optional<FailedRead>& failed_read() const { return failure_; }

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
    std::uint64_t offer = 0;     // the number of the part, if it is an offer
    std::uint64_t address = 0;   // of the offer
    Message* receive = nullptr;  // the receive that has claimed it while parts were missing
    bool is_complete = false;
  };
  struct Outgoing {
    Ring ring;
    std::uint64_t next = 1;   // the number of the next part
    std::uint64_t taken = 0;  // as far as this member knows
    std::list<Message*> queue;
    std::size_t sent = 0;  // bytes of the first message of the queue
    std::list<std::pair<std::uint64_t, Message*>> offers;  // that have not been fetched
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
  [[nodiscard]] bool is_offered(const Message& message) const {
    return fetching_.reader != nullptr && message.bytes() >= fetching_.least_bytes;
  }
  [[nodiscard]] bool offer(Outgoing& out, Message& message);
  static void look_for_fetched(Outgoing& out);
  void fetch(Incoming& in, Message& receive, const Envelope& envelope, std::uint64_t number,
             std::uint64_t address);
  void take_offer(Incoming& in);
  static void put(Outgoing& out, const Envelope& envelope, const std::byte* from,
                  std::size_t bytes);
  void push(Outgoing& out);
  [[nodiscard]] static bool is_there(const Incoming& in);
  static void take(Incoming& in, std::byte* to, std::size_t bytes);
  /// @param all  Also messages that no receive wants.
  void pull(Incoming& in, bool all);
  [[nodiscard]] static Message* wanted_by(Incoming& in, const Envelope& envelope);
  static void begin_message(Incoming& in, const Envelope& envelope);
  static void end_message(Incoming& in);
  static void deliver(Early& early);

  std::vector<Outgoing> out_;
  std::vector<Incoming> in_;
  Fetching fetching_;
  std::optional<FailedRead> failure_;
  bool has_given_up_ = false;
};

}  // namespace rankmesh::shm
