// SPDX-License-Identifier: BSD-3-Clause
// How the messages of one sender and the receives of one receiver are matched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "transport/shm/ring.hpp"

namespace rankmesh::shm {

/// One half of a call: a message to another member, or one from another member. It must not move
/// until it is complete or forgotten.
struct Message {
  std::size_t peer = 0;
  Envelope envelope{};
  const std::byte* source = nullptr;  ///< what is sent; null for a receive
  std::byte* target = nullptr;        ///< where it is received
  /// For a message that the ring only announces: whether the announcement has been sent or has
  /// arrived.
  bool is_complete = false;
  /// For a receive: the envelope of the message, if its type or length differs. In this case the
  /// receive is complete, and its memory is unchanged.
  std::optional<Envelope> wrong{};

  /// Returns whether another transport carries the elements.
  [[nodiscard]] bool is_large() const { return !Ring::carries(envelope.bytes()); }
  /// Completes a receive. Returns whether the message has the expected type and length.
  bool complete(const Envelope& arrived) {
    is_complete = true;
    if (!envelope.agrees_with(arrived)) wrong = arrived;
    return !wrong;
  }
};

/// Returns the elements in words: `3 x float32`.
[[nodiscard]] std::string text_of(const Envelope& envelope);

/// The receives that wait for messages of one sender, and the messages that came before their
/// receives. As in MPI, a message goes to the first receive that has its tag and no message yet.
class Inbox {
 public:
  /// A message that came before its receive.
  struct Early {
    Envelope envelope;
    std::vector<std::byte> bytes;  ///< Empty if it is only announced.
  };

  /// Removes the first early message with a tag, and returns it.
  [[nodiscard]] std::optional<Early> take_early(std::int32_t tag);
  /// Removes the first receive with a tag, and returns it; null if there is none.
  [[nodiscard]] Message* take_receive(std::int32_t tag);
  /// Adds a receive for which no message has come.
  void wait(Message& receive) { receives_.push_back(&receive); }
  /// Adds a message for which no receive waits. The caller fills its bytes.
  Early& keep(const Envelope& envelope, std::size_t bytes) {
    return early_.emplace_back(Early{envelope, std::vector<std::byte>(bytes)});
  }
  /// Puts an announcement back, so that the next receive with its tag gets it.
  void put_back(const Envelope& envelope) { early_.push_front({envelope, {}}); }
  /// Ends a receive. Returns false if it does not wait.
  bool cancel(Message& receive) { return std::erase(receives_, &receive) != 0; }
  [[nodiscard]] bool has_receives() const { return !receives_.empty(); }
  [[nodiscard]] bool is_empty() const { return early_.empty() && receives_.empty(); }
  /// Returns the size in bytes of the message that the next receive with this tag gets, if it has
  /// come.
  [[nodiscard]] std::optional<std::int64_t> arrived(std::int32_t tag) const;
  void clear() {
    receives_.clear();
    early_.clear();
  }

 private:
  std::list<Message*> receives_;
  std::list<Early> early_;
};

}  // namespace rankmesh::shm
