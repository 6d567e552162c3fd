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

#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// What a rank does at the moment of its record.
enum class Activity : std::uint8_t {
  call,       ///< It is in a call of a group.
  wait,       ///< It is in another wait of rankmesh, see Record::wait.
  outside,    ///< It is outside rankmesh: it computes, or is blocked elsewhere.
  closed,     ///< It has closed the mesh.
  destroyed,  ///< It has destroyed the mesh without close().
  failed,     ///< An exception has destroyed the mesh.
};

/// What one rank does, and for whom it waits.
struct RankActivity {
  std::size_t record = 0;  ///< Index in the records that were passed to diagnose().
  Rank rank{};
  Activity activity = Activity::outside;
  /// Index in Record::calls. If the activity is `call`, the rank is in this call. If it is `wait`,
  /// the rank waits for the end of this asynchronous call. Otherwise this is the last call of the
  /// rank. Empty if there is no such call.
  std::optional<std::size_t> call{};
  /// When the activity began; empty if no time was taken.
  std::optional<Time> since{};
  /// The activity in words, without times, for example `in tp.barrier(), call 7` or `outside
  /// rankmesh since tp.barrier(), call 6`.
  std::string text{};
  /// The ranks that must act before this rank can go on. Empty if there is none, or if it is not
  /// known.
  RankSet waits_for{};
  /// Whether the rank needs all ranks of `waits_for`. Otherwise it needs at least one of them, or
  /// the operation may end without them.
  bool is_certain = false;
};

/// A part of a finding: what some ranks do, and for whom they wait.
struct Step {
  RankSet ranks{};
  std::string text{};   ///< The call or the activity, for example `tp.barrier(), call 7`.
  RankSet waits_for{};  ///< Empty if these ranks wait for nobody.
};

/// One thing that a person who looks for a hang wants to know.
struct Finding {
  enum class Kind : std::uint8_t {
    different_calls,  ///< The members of a group have made different calls with the same number.
    missing_call,     ///< A rank has closed the mesh with fewer calls than other members.
    circle,           ///< Ranks wait for each other, for example by crossed orders of two groups.
    message,          ///< Messages of different sizes, or a send or receive without the other end.
    waits,            ///< Ranks wait for ranks that wait for nobody.
    no_record,        ///< Ranks have no record.
    progress,         ///< No rank waits for another rank.
  };
  enum class Severity : std::uint8_t {
    error,    ///< The program is wrong, or the job cannot go on.
    warning,  ///< The program is probably wrong, or the job probably cannot go on.
    note,     ///< Nothing shows that anything is wrong, for example a short wait for a rank that
              ///< computes.
  };
  Kind kind = Kind::progress;
  Severity severity = Severity::note;
  std::string text{};  ///< The finding in whole sentences, with a full stop at the end.
  /// The ranks that the finding is about: those that have made different calls, that wait in a
  /// circle, or that wait for nobody although others wait for them.
  RankSet ranks{};
  RankSet waiting{};  ///< The ranks that wait for `ranks`, directly or through other ranks.
  /// The details. `different_calls`: the ranks of each different call. `circle`: the ranks of one
  /// circle in the order in which they wait for each other. `waits` and `missing_call`: the longest
  /// chain of waits; the last step is a rank that waits for nobody. `message`: the two ends.
  std::vector<Step> steps{};
};

/// What the records of a mesh say about a job.
struct Diagnosis {
  std::vector<RankActivity> ranks;  ///< In the order of their ranks.
  RankSet missing;                  ///< Ranks of the mesh that have no record.
  /// Errors first, then warnings, then notes. Never empty unless there are no records. Findings of
  /// the same calls in different groups are one finding. There are at most 32 of each kind; the
  /// last one then says how many more there are.
  std::vector<Finding> findings;

  /// Returns whether a finding is an error.
  [[nodiscard]] RANKMESH_API bool has_error() const;
};

/// Finds out what the ranks of a mesh wait for.
///
/// The records may be incomplete: ranks may be missing, old calls may have left the record, and
/// times may be missing. The records may also have been read one after the other from a job that
/// runs. The function claims only what the records show:
///
/// - A member in collective n of a group waits for the members whose last collective in the group
///   has a lower number. In broadcast and scatter, a member waits only for the root. Whether the
///   root of these waits, and for whom another member than the root waits in reduce and gather, is
///   not certain, and neither is it in v-forms, whose blocks may be empty.
/// - A receive waits for the send with the same position among the messages of both ranks with the
///   same tag. A send may wait for its receive.
/// - Asynchronous calls that are not complete count only if the rank waits for their end. Device
///   calls of different groups that ranks have issued in different orders are a warning.
/// - A wait for a rank that waits for nobody is a warning if it has lasted for at least 10 s, and a
///   note if it is shorter or no time was taken.
/// - Waits that form a circle cannot end, even if the records were read at different times. Other
///   waits are ignored if they began after the records of all ranks that they wait for were read.
///
/// The function reads nothing but the records, has no side effects, and throws nothing but
/// std::bad_alloc. Ranks, groups and numbers may be nonsense, but enumerations and operations must
/// have valid values. The time is linear in the number of calls, plus for each distinct call in
/// which ranks wait the number of members of its group. For 10,000 ranks with 4,096 calls each it
/// takes a few seconds, and 8 bytes per call.
/// @param records  records with the same mesh_key. If two records have the same rank, the second
/// one is ignored.
[[nodiscard]] RANKMESH_API Diagnosis diagnose(std::span<const Record> records);

/// Returns the name of a value, as in reports: for example `missing_call`, `error`, `outside` or
/// `stopped`.
[[nodiscard]] RANKMESH_API std::string_view to_string(Finding::Kind kind);
[[nodiscard]] RANKMESH_API std::string_view to_string(Finding::Severity severity);
[[nodiscard]] RANKMESH_API std::string_view to_string(Activity activity);
[[nodiscard]] RANKMESH_API std::string_view to_string(Process process);

/// Returns a duration for people, for example `350 ms`, `12.3 s` or `2 min 5 s`. Negative durations
/// count as 0.
[[nodiscard]] RANKMESH_API std::string duration_text(Time duration);

}  // namespace rankmesh::record
