// SPDX-License-Identifier: BSD-3-Clause
// Computes what the ranks of a job did between two readings of their records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// How often a rank was the last member to reach a collective.
struct Lateness {
  std::int64_t times = 0;  ///< How often.
  Time caused = 0;         ///< The time that the other members waited for the rank, added up.
};

/// What the ranks of one family did between two readings of their records. The figures cover all
/// groups of the family.
struct FamilyActivity {
  std::string name;        ///< The name of the family.
  std::int64_t ranks = 0;  ///< How many ranks have a group of this family.
  double calls = 0;        ///< The calls that these ranks made.
  double bytes = 0;        ///< The bytes of the largest buffer of each call, added up.
  /// True if a record lost calls because its rank made more than 4,096 calls between the readings.
  /// `calls` and `bytes` then assume that the lost calls were like the calls that are left.
  bool is_extrapolated = false;
  Time waited = 0;    ///< The time that the ranks were inside blocking calls, added up.
  Time observed = 0;  ///< The time that the records cover, added up over the ranks.

  std::map<std::size_t, Lateness> last;  ///< The key is the index of the record.
  std::int64_t decided = 0;              ///< Collectives whose last member is known.
  std::int64_t undecided = 0;  ///< Collectives in which members waited, but whose last member is
                               ///< not known.

  /// Returns the calls in each second.
  [[nodiscard]] double calls_per_second() const { return per_second(calls); }
  /// Returns the bytes in each second.
  [[nodiscard]] double bytes_per_second() const { return per_second(bytes); }
  /// Returns the mean share of the time that a rank of the family waited, from 0 to 1.
  [[nodiscard]] double waited_share() const {
    return observed == 0 ? 0 : static_cast<double>(waited) / static_cast<double>(observed);
  }
  /// Returns the rank that was last most often, as the index of its record. If several ranks were
  /// last equally often, returns the one for which the others waited longest.
  [[nodiscard]] std::optional<std::size_t> most_often_last() const;

  /// The time from the first to the second reading of a record, added up over the ranks.
  Time elapsed = 0;

 private:
  [[nodiscard]] double per_second(double figure) const {
    return elapsed == 0 ? 0
                        : figure * 1e9 / static_cast<double>(elapsed) * static_cast<double>(ranks);
  }
};

/// What a job did between two readings of its records.
struct JobActivity {
  double seconds = 0;                    ///< The mean time between the two readings.
  std::vector<FamilyActivity> families;  ///< In the order of their names.
};

/// Returns what the ranks did between two readings. A rank counts if both readings have its record.
///
/// **Calls and bytes** are exact if the records still contain all calls of the interval.
///
/// **Waiting** is known only for calls with times: those that left the fast path, and those that
/// MPI carries. A call without times did not wait, so only short times are missing. The times
/// include the transfer of the data. Asynchronous calls and calls on devices do not block and are
/// left out; the time inside Work::wait() is not recorded.
///
/// **The last member** is known only for collectives that synchronise their members (see
/// synchronises()) and that the records of all members contain. For these, it is known in two
/// cases:
/// - The records have the begin times of all members. The last member is the one with the latest
///   begin time, unless another begin time is so close that the errors of the two nodes' clocks
///   could reverse the order.
/// - All members but one waited. Then the member without times is the last.
///
/// If several members did not wait, it is not known which of them was the last. Without
/// Record::has_all_times, the times of every 64th call of a rank are recorded even if the rank does
/// not wait. Therefore these times do not prove that the rank waited. A collective whose last
/// member is not known counts as undecided if a member waited. Collectives in which no member
/// waited do not count at all. Therefore the figures show which rank is last in those collectives
/// in which other ranks had to wait. They do not show how often a rank is last in all calls.
///
/// For C calls this takes O(C log C) time and O(C) memory.
[[nodiscard]] JobActivity activity_between(std::span<const Record> before,
                                           std::span<const Record> now);

}  // namespace rankmesh::record
