// SPDX-License-Identifier: BSD-3-Clause
// Before a collective step, all ranks agree that they pass the same values, and that none has
// failed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh {

/// What all ranks must pass alike, as a list of fields, and whether this rank has failed.
///
/// If all fields are equal and no rank has failed, the cost is one non-blocking reduction of 48
/// bytes. Otherwise, rank 0 also gathers the fields of all ranks and broadcasts its finding. In
/// this case, rank 0 receives O(ranks x length of the fields) bytes.
class RANKMESH_API Agreement {
 public:
  /// Adds a field. This function is local.
  /// @param hash  the hash of the value. agree() compares this hash.
  /// @param text  the value as text. The error message contains this text.
  void add(std::string field, Hash128 hash, std::string text);
  /// Adds a field whose value is the text itself. Local.
  void add(std::string field, const std::string& text) {
    add(std::move(field), hash_bytes(text), text);
  }
  /// Records that this rank has failed. The rank must still call agree(), which reports the
  /// failure on all ranks.
  void fail(std::string message) { failure_ = std::move(message); }
  /// Asks all ranks for a further step: agree() returns true on all of them. Local.
  void ask() { asks_ = true; }
  /// Sets the hint of the error that says which fields differ. This function is local.
  void advise(std::string hint) { hint_ = std::move(hint); }

  /// Compares the fields of all ranks. This function is collective over the communicator. It blocks
  /// until all ranks have called it or the deadline passes.
  /// @param activity  the name of the activity that follows; used in messages.
  /// @return whether any rank has called ask().
  /// @throws MismatchError if some ranks failed, or if fields differ. The error message is the same
  /// on every rank. If ranks failed, it contains their messages. Otherwise, it lists each value of
  /// a differing field, together with the ranks that have this value. The value that the fewest
  /// ranks have comes first. Ranks have their numbers in the mesh.
  /// @throws TimeoutError if some ranks did not call agree() before the deadline. The error names
  /// these ranks.
  bool agree(const mpi::CommunicatorView& comm, WaitMonitor& monitor, std::string_view activity,
             const Deadline& deadline) const;

  /// Says whether a rank has failed, and hashes its fields. agree() succeeds if no rank has failed
  /// and all summaries are equal, so ranks that have compared their summaries need not call it.
  struct Summary {
    std::uint64_t has_failed = 0;  ///< 1 if the rank has failed.
    Hash128 hash{};                ///< The hash of all fields.
    /// Returns whether all members are equal.
    friend bool operator==(const Summary&, const Summary&) = default;
  };
  /// Returns the summary of this rank. Local.
  [[nodiscard]] Summary summary() const;

 private:
  struct Field {
    std::string name;
    Hash128 hash;
    std::string text;
  };
  [[nodiscard]] std::string record() const;
  static std::string finding(const WaitMonitor& monitor, std::string_view activity,
                             const std::vector<std::string>& records);
  // Words whose maxima over all ranks show whether ranks have failed, differ, or ask.
  using Maxima = std::array<std::uint64_t, 6>;
  [[nodiscard]] Maxima reduce(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                              const WaitPoint& point, const Deadline& deadline) const;

  std::vector<Field> fields_;
  std::string failure_;
  bool asks_ = false;
  std::string hint_ = "start all ranks with the same mesh, options, environment and libraries";
};

/// Holds the communicator of the ranks that take part in a collective step, and the objects that
/// these ranks need to wait for each other.
struct Participants {
  mpi::CommunicatorView comm;       ///< The communicator of the ranks.
  WaitMonitor* monitor = nullptr;   ///< The monitor of the communicator.
  Deadline::Duration timeout{600};  ///< The time limit of the step.

  /// Returns a deadline that begins now.
  [[nodiscard]] Deadline deadline() const { return Deadline{timeout}; }
  /// Returns if all participants pass the same fields and none has failed. See Agreement::agree().
  bool agree(std::string_view activity, const Agreement& agreement) const {
    return agreement.agree(comm, *monitor, activity, deadline());
  }
  /// Returns if no participant has failed. This function is collective over the participants,
  /// and it blocks.
  /// @param failure  the reason why this rank has failed, or an empty text if this rank has not
  /// failed.
  /// @throws MismatchError if a participant failed. The error contains all failures, and its text
  /// is the same on every participant.
  /// @throws TimeoutError if some participants did not call agree() before the deadline. The error
  /// names these participants.
  void agree(std::string_view activity, const std::string& failure) const {
    Agreement agreement;
    if (!failure.empty()) agreement.fail(failure);
    agree(activity, agreement);
  }
};

}  // namespace rankmesh
