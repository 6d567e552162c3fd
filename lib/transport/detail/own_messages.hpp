// SPDX-License-Identifier: BSD-3-Clause
// Messages of a member to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "wrong_length.hpp"

namespace rankmesh::detail {

/// The messages on host memory that a member of a group sends to itself. Messages with one tag
/// arrive in the order in which they were sent. A message for which no receive waits is copied, so
/// a send never waits.
class OwnMessages {
 public:
  /// A receive. It must stay where it is until it is complete or withdrawn.
  struct Receive {
    Buffer out;
    int tag = 0;
    bool is_complete = false;
    std::optional<WrongLength> wrong{};  ///< If the message has another type or length.
  };

  void send(const ConstBuffer& in, int tag);
  /// Receives a message that was sent, or waits for the next one with this tag.
  void begin(Receive& receive);
  /// Ends a receive that is not complete.
  void withdraw(const Receive& receive) { std::erase(waiting_, &receive); }
  /// Returns the size in bytes of the message that the next receive with this tag gets, if it was
  /// sent.
  [[nodiscard]] std::optional<std::int64_t> arrived(int tag) const;
  /// Returns whether a message with this tag was sent, or a receive waits for one.
  [[nodiscard]] bool has_any(int tag) const;

 private:
  struct Message {
    std::vector<std::byte> bytes;
    std::int64_t count;
    DataType type;
    int tag;
  };
  static void complete(Receive& receive, const ConstBuffer& in);

  std::deque<Message> sent_;      // for which no receive has waited
  std::deque<Receive*> waiting_;  // for messages that were not sent yet
};

}  // namespace rankmesh::detail
