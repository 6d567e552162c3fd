// SPDX-License-Identifier: BSD-3-Clause
// Finds the calls of different ranks that belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// Names a call by the index of its record and by its index in Record::calls.
struct CallIndex {
  std::size_t record = 0;
  std::size_t call = 0;
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
  CallIndex send;
  CallIndex receive;
  /// Whether the records of both ranks are complete. Otherwise the pair relies on an assumption,
  /// see Matching::messages().
  bool is_certain = false;
};

/// Finds the calls that belong together. Calls of a CUDA graph belong to no meeting, because a
/// graph can run them any number of times.
class RANKMESH_API Matching {
 public:
  /// The result of meeting_of() for a call that belongs to no meeting.
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Compares all calls. For n calls this takes O(n log n) time and O(n) memory. The object keeps
  /// no reference to the records.
  explicit Matching(std::span<const Record> records);

  /// Returns all collectives, those of the same group in the order of their numbers.
  [[nodiscard]] const std::vector<Meeting>& meetings() const { return meetings_; }
  /// Returns the index of the meeting to which a call belongs, or `none`.
  [[nodiscard]] std::size_t meeting_of(CallIndex index) const {
    return meeting_of_[index.record][index.call];
  }
  /// Returns the messages. Messages have no numbers, so the n-th message that a member sends to
  /// another one with a tag is the n-th that the other receives from it with this tag. If one of
  /// the two records has lost its oldest calls, the messages are counted from the first collective
  /// that synchronises both ranks, on the assumption that no message was on its way at that time.
  /// The messages of two members with a tag are left out if counts or types contradict this.
  [[nodiscard]] const std::vector<Message>& messages() const { return messages_; }

 private:
  std::vector<Meeting> meetings_;
  std::vector<std::vector<std::size_t>> meeting_of_;
  std::vector<Message> messages_;
};

/// Returns whether a member can leave the collective only after every member has begun it. This
/// does not hold for operations with a root, and not for blocks that may be empty.
[[nodiscard]] RANKMESH_API bool synchronises(const CallDescriptor& descriptor);

/// Returns the bytes of the largest buffer that the rank passed to the call, which is the size that
/// routes compare. In a v-form this is the size of the rank's own block.
[[nodiscard]] RANKMESH_API std::int64_t bytes_of(const Record& record, const Call& call);

/// Returns the name by which the program knows the group of the call, for example `tp`.
[[nodiscard]] RANKMESH_API const std::string& family_of(const Record& record, const Call& call);

/// Returns whether the record still has every call that the rank has made.
[[nodiscard]] inline bool is_complete(const Record& record) {
  return record.calls_made == record.calls.size() + record.marks.size();
}

}  // namespace rankmesh::record
