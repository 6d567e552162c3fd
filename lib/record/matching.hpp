// SPDX-License-Identifier: BSD-3-Clause
// Finds the calls of different ranks that belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// Names a call by the index of its record and by its index in Record::calls.
struct CallIndex {
  std::size_t record = 0;  ///< Index of the record.
  std::size_t call = 0;    ///< Index in Record::calls.
  /// Returns whether all fields are equal.
  friend bool operator==(const CallIndex&, const CallIndex&) = default;
};

/// One collective, with the calls of all members whose records still have it.
struct Meeting {
  std::vector<CallIndex> calls;  ///< in the order of the records
  bool has_all_members = false;  ///< Whether `calls` has a call of every member of the group.
  bool agrees = true;            ///< Whether the descriptors of all calls match.
};

/// One message, with the call that sends it and the call that receives it.
struct Message {
  CallIndex send;     ///< The send.
  CallIndex receive;  ///< Its receive.
  /// Whether the records of both ranks are complete. Otherwise the pair relies on an assumption,
  /// see Matching::messages().
  bool is_certain = false;
};

/// Finds the calls that belong together. A call that became part of a CUDA graph belongs to no
/// meeting, because the graph can run it any number of times.
class Matching {
 public:
  /// The result of meeting_of() for a call that belongs to no meeting.
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Compares all calls. For n calls this takes O(n log n) time and O(n) memory. The object keeps
  /// no reference to the records.
  explicit Matching(std::span<const Record> records);

  /// Returns all collectives. Those of the same group are in the order of their numbers.
  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }
  /// Returns the index of the meeting to which a call belongs, or `none`.
  [[nodiscard]] std::size_t meeting_of(CallIndex index) const {
    return meeting_of_[index.record][index.call];
  }
  /// Returns the messages. Messages have no numbers. Of the messages from one member to another
  /// with the same tag, the n-th send therefore belongs to the n-th receive. If one of the two
  /// records has lost its oldest calls, the messages are counted from the first collective that
  /// synchronises both ranks, on the assumption that no message was in flight at that time. If
  /// counts or types contradict this assumption, the messages of these two members with this tag
  /// are left out.
  [[nodiscard]] const std::vector<Message>& messages() const { return messages_; }

 private:
  std::vector<Meeting> meetings_;
  std::vector<std::vector<std::size_t>> meeting_of_;
  std::vector<Message> messages_;
};

/// Returns whether a member can leave the collective only after every member has begun it. This
/// holds neither for operations with a root nor for operations whose blocks may be empty.
[[nodiscard]] bool synchronises(const CallDescriptor& descriptor);

/// Returns the size in bytes of the largest buffer that the rank passed to the call. The rules of
/// routes test the same size. In a v-form, it is the size of the rank's own block.
[[nodiscard]] std::int64_t bytes_of(const Record& record, const Call& call);

/// Returns the name by which the program knows the group of the call, for example `tp`.
[[nodiscard]] const std::string& family_of(const Record& record, const Call& call);

/// Returns whether the record still has every call that the rank has made.
[[nodiscard]] inline bool is_complete(const Record& record) {
  return record.calls_made == record.calls.size() + record.marks.size();
}

}  // namespace rankmesh::record
