// SPDX-License-Identifier: BSD-3-Clause
// The messages of a job: which send belongs to which receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "record/detail/job.hpp"

namespace rankmesh::record::detail {

/// Messages between two ranks that are matched only by their order.
struct StreamKey {
  std::size_t group = 0;   ///< Index in Job::groups().
  std::size_t sender = 0;  ///< Node.
  std::size_t receiver = 0;
  std::int32_t tag = 0;  ///< -1 for messages on device memory: NCCL has no tags.
  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};

struct StreamKeyHash {
  std::size_t operator()(const StreamKey& key) const;
};

/// The calls that send and receive these messages, as indices in Record::calls.
struct Stream {
  std::vector<std::uint32_t> sends, receives;
};

/// One end of a message.
struct MessageEnd {
  StreamKey key;
  Rank other;  ///< The rank at the other end; it may have no record, then its node is `none`.
  bool is_send = false;
};

class Messages {
 public:
  explicit Messages(const Job& job);
  /// Returns the ends of a call: one, or two for send_recv. Ends whose other member is not known,
  /// or is the rank itself, are left out.
  [[nodiscard]] static std::vector<MessageEnd> ends_of(const Job& job, std::size_t node,
                                                       const Call& call);
  /// What is known of the other end of a message.
  enum class Match : std::uint8_t {
    made,      ///< The other rank has made the call that belongs to it.
    not_made,  ///< The other rank has not made it.
    unknown,   ///< A record has lost old calls, so the messages cannot be counted.
  };
  [[nodiscard]] Match match_of(const Job& job, const MessageEnd& end, std::size_t call) const;
  [[nodiscard]] const std::unordered_map<StreamKey, Stream, StreamKeyHash>& streams() const {
    return streams_;
  }
  /// Returns the position of a call among the messages of a stream, from 1; 0 if it is not there.
  [[nodiscard]] std::size_t position_of(const MessageEnd& end, std::size_t call) const;
  /// Returns the call at the other end, or null.
  [[nodiscard]] const Call* other_call(const Job& job, const MessageEnd& end,
                                       std::size_t call) const;

 private:
  std::unordered_map<StreamKey, Stream, StreamKeyHash> streams_;
};

}  // namespace rankmesh::record::detail
