// SPDX-License-Identifier: BSD-3-Clause
// Says what is wrong with a job, from the records of its ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/severity.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// What a rank does at the moment of its record.
enum class Activity : std::uint8_t {
  call,       ///< It is in a call of a group.
  wait,       ///< It waits elsewhere in rankmesh, see Record::wait.
  outside,    ///< It is outside rankmesh: it computes, or is blocked elsewhere.
  closed,     ///< It has closed the mesh.
  destroyed,  ///< It has destroyed the mesh without close().
  failed,     ///< An exception has destroyed the mesh.
};

/// What one rank does, and for whom it waits.
struct RankActivity {
  std::size_t record = 0;                 ///< Index in the records that were passed to diagnose().
  Rank rank{};                            ///< The rank in the mesh.
  Activity activity = Activity::outside;  ///< What the rank does.
  /// Index in Record::calls. If the activity is `call`, the rank is in this call. If it is `wait`,
  /// the rank waits for the end of this asynchronous call. Otherwise this is the last call of the
  /// rank. Empty if there is no such call.
  std::optional<std::size_t> call{};
  /// When the activity began; empty if no time was taken.
  std::optional<Time> since{};
  /// The activity in words, without times, for example `in tp.barrier(), call 7` or `outside
  /// rankmesh since tp.barrier(), call 6`.
  std::string text{};
  /// The ranks that must act before this rank can continue. Empty if there are none, or if they are
  /// not known.
  RankSet waits_for{};
  /// True if the rank cannot continue before all ranks of `waits_for` have acted. False if the
  /// operation may end even if some of these ranks, or all of them, have not acted.
  bool is_certain = false;
};

/// A part of a finding: what some ranks do, and for whom they wait.
struct Step {
  RankSet ranks{};      ///< The ranks that do the same.
  std::string text{};   ///< The call or the activity, for example `tp.barrier(), call 7`.
  RankSet waits_for{};  ///< Empty if these ranks wait for no other rank.
};

/// One statement about the job, for a person who looks for the cause of a hang.
struct Finding {
  /// What a finding is about.
  enum class Kind : std::uint8_t {
    different_calls,  ///< The members of a group have made different calls with the same number.
    missing_call,     ///< A rank has closed the mesh with fewer calls than other members.
    circle,           ///< Ranks wait for each other, for example because of crossed orders.
    message,          ///< A send and its receive differ, or one of the two is missing.
    waits,            ///< Ranks wait for ranks that wait for no other rank.
    no_record,        ///< Ranks have no record.
    progress,         ///< No rank waits for another rank; some may have ended early.
  };
  /// An error: the program is wrong. A warning: it is probably wrong. A note: nothing shows that
  /// anything is wrong, for example a short wait for a rank that computes.
  using Severity = rankmesh::Severity;
  Kind kind = Kind::progress;          ///< What the finding is about.
  Severity severity = Severity::note;  ///< How serious it is.
  std::string text{};  ///< The finding in whole sentences, with a full stop at the end.
  /// The ranks that the finding is about: those that have made different calls, that wait in a
  /// circle, or that wait for no other rank although other ranks wait for them.
  RankSet ranks{};
  RankSet waiting{};  ///< The ranks that wait for `ranks`, directly or through other ranks.
  /// The details, which depend on the kind:
  /// - `different_calls`: a step for each different call, with its ranks.
  /// - `circle`: the ranks of one circle, in the order in which they wait for each other.
  /// - `waits` and `missing_call`: the longest chain of waits. The last step is a rank that waits
  ///   for no other rank.
  /// - `message`: the two ends of each message.
  std::vector<Step> steps{};
};

/// What the records of a mesh say about a job.
struct Diagnosis {
  std::vector<RankActivity> ranks;  ///< In the order of their ranks.
  RankSet missing;                  ///< Ranks of the mesh that have no record.
  /// Errors first, then warnings, then notes. Never empty unless there are no records. If the same
  /// calls cause a finding in several groups, there is one finding for all of these groups. There
  /// are at most 32 findings of each kind. If there would be more, the last one says how many are
  /// left out.
  std::vector<Finding> findings;

  /// Returns whether a finding is an error.
  [[nodiscard]] bool has_error() const;
};

/// Finds out what the ranks of a mesh wait for.
///
/// The records may be incomplete: ranks may be missing, old calls may have been overwritten, and
/// times may be missing. The records may also have been read one after the other from a running
/// job. The function claims only what the records show:
///
/// - A member in collective n of a group waits for the members whose last collective in the group
///   has a lower number. In broadcast and scatter, a member waits only for the root. Some waits are
///   possible but not certain: waits of the root in broadcast and scatter, waits of the members
///   other than the root in reduce and gather, and waits in v-forms, whose blocks may be empty.
/// - The n-th receive from a member with a tag waits for the n-th send of that member with this
///   tag. A send may wait for its receive.
/// - An asynchronous call that is not complete counts only if the rank waits for its end. If ranks
///   have issued device calls of different groups in different orders, this is a warning.
/// - If a rank waits for a rank that waits for no other rank, this is a warning if the wait has
///   lasted for at least 10 s. It is a note if the wait is shorter, or if no time was taken.
/// - Waits that form a circle cannot end, even if the records were read at different times. A
///   wait outside a circle is ignored if the records of all ranks for which it waits were read
///   before the wait began: these ranks may have acted since.
///
/// The function reads nothing but the records, has no side effects, and throws nothing but
/// std::bad_alloc. Ranks, groups and numbers may have wrong values, but enumerations and operations
/// must have valid values. The time is linear in the number of calls. In addition, each distinct
/// call in which ranks wait takes time linear in the size of its group. 10,000 ranks with 4,096
/// calls each take a few seconds, and 8 bytes of memory per call.
/// @param records  records with the same mesh_key. If two records have the same rank, the second
/// one is ignored.
[[nodiscard]] Diagnosis diagnose(std::span<const Record> records);

/// Returns the name of a value as it appears in reports, for example `missing_call`, `error`,
/// `outside` or `stopped`.
[[nodiscard]] std::string_view to_string(Finding::Kind kind);
/// Returns the activity as a word.
[[nodiscard]] std::string_view to_string(Activity activity);
/// Returns the state of the process as a word.
[[nodiscard]] std::string_view to_string(Process process);

/// Returns a duration in readable form, for example `350 ms`, `12.3 s` or `2 min 5 s`. Negative
/// durations count as 0.
[[nodiscard]] std::string duration_text(Time duration);

}  // namespace rankmesh::record
