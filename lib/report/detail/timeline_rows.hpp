// SPDX-License-Identifier: BSD-3-Clause
// The rows of a timeline: every call of a rank as a bar with a begin time and an end time.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/matching.hpp"

namespace rankmesh::report::detail {

/// A call on the time axis.
struct Bar {
  /// The value of `call` of a bar that stands for Record::wait.
  static constexpr std::size_t wait = std::numeric_limits<std::size_t>::max();

  std::size_t call = 0;  ///< Index in Record::calls, or `wait`.
  record::Time begin = 0;
  record::Time end = 0;
  bool is_begin_estimated = false;
  bool is_end_estimated = false;
  /// Bars of one lane do not overlap. Blocking calls are in lane 0; asynchronous ones and those of
  /// NCCL, during which the rank goes on, are in others.
  std::size_t lane = 0;
};

/// When the first member left each meeting, if that was recorded.
using FirstEnds = std::vector<std::optional<record::Time>>;
FirstEnds first_ends(std::span<const record::Record> records, const record::Matching& matching);

/// Returns the bars of a rank, in ascending order of their begin times. Timeline has those of all
/// ranks.
///
/// The record of a call may lack times. Such calls are distributed evenly between the neighbouring
/// calls that have times. They are drawn with a length of at most 10 us, because they did not wait.
/// If other members of a collective waited and the rank did not, the rank was the last member. Its
/// call then lies at the time at which the first of the other members left. A call that is not over
/// is drawn until the record was read. Calls of NCCL in one group run one after the other, so the
/// bar of such a call begins no earlier than the end of the previous bar.
std::vector<Bar> bars_of(std::span<const record::Record> records, std::size_t index,
                         const record::Matching& matching, const FirstEnds& ends);

/// The bars of all ranks of a job.
struct Timeline {
  explicit Timeline(std::span<const record::Record> records);

  /// Returns the bar of a call.
  [[nodiscard]] const Bar& bar_of(record::CallIndex call) const {
    return bars[call.record][places[call.record][call.call]];
  }
  /// Returns the begin of the first bar; nothing if there is none.
  [[nodiscard]] std::optional<record::Time> begin() const;

  std::span<const record::Record> records;
  record::Matching matching;
  std::vector<std::vector<Bar>> bars;            ///< of each record
  std::vector<std::vector<std::size_t>> places;  ///< of each call of each record, among the bars
};

/// Returns the order of the rows: the indices of the records, sorted by node, then by coordinates
/// as numbers, then by rank.
std::vector<std::size_t> order_of_rows(std::span<const record::Record> records);

/// Returns the number of lanes of a row, at least 1.
std::size_t lanes_of(std::span<const Bar> bars);

/// An arrow from a point of one call to a point of another.
struct Arrow {
  record::CallIndex from, to;
};

/// Returns the arrows of the job. In a collective, arrows lead from the member that began last to
/// the other members. If the members wait only for the root, the arrows lead from the root to the
/// others. If only the root waits, the arrows lead to the root. A message has an arrow from its
/// send to its receive.
std::vector<Arrow> arrows_of(const Timeline& timeline);

/// Returns the present activity of the rank: the call that it has not finished, or its other wait.
/// Empty if there is neither.
std::string activity_of(const record::Record& record);

}  // namespace rankmesh::report::detail
