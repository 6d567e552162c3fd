// SPDX-License-Identifier: BSD-3-Clause
// Verifies before a collective that all ranks pass the same values and that no rank has failed.
#pragma once

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

/// Verifies that a list of fields is the same on all ranks, and that no rank has failed.
///
/// Cost: one non-blocking reduction of 40 bytes. If the fields differ or a rank has failed, rank 0
/// then gathers all fields, which are O(ranks x length of the fields) bytes, and broadcasts its
/// finding.
class RANKMESH_API Agreement {
 public:
  /// Adds a field. Local.
  /// @param hash  The hash of the value, which is compared.
  /// @param text  The value, for the message.
  void add(std::string field, Hash128 hash, std::string text);
  void add(std::string field, const std::string& text) {
    add(std::move(field), hash_bytes(text), text);
  }
  /// Records that this rank has failed. The rank must still call verify(), which reports the
  /// failure on all ranks.
  void fail(std::string message) { failure_ = std::move(message); }

  /// Compares the fields of all ranks. Collective over the communicator; blocks until all ranks
  /// have called it, at most for the deadline.
  /// @param activity  The activity that follows, for messages.
  /// @throws MismatchError  Some ranks failed, or fields differ. The error holds the messages of
  ///                        the failed ranks, or lists each value with its ranks, the smallest set
  ///                        of ranks first. The text is the same on every rank.
  /// @throws TimeoutError   Some ranks did not call verify(). The error names them.
  void verify(const mpi::CommunicatorView& comm, WaitMonitor& monitor, std::string_view activity,
              const Deadline& deadline) const;

 private:
  struct Field {
    std::string name;
    Hash128 hash;
    std::string text;
  };
  [[nodiscard]] std::string record() const;
  static std::string finding(std::string_view activity, const std::vector<std::string>& records);
  [[nodiscard]] bool differs(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                             const WaitPoint& point, const Deadline& deadline) const;

  std::vector<Field> fields_;
  std::string failure_;
};

/// Holds the ranks that take part in a collective step, and the objects that they need to wait for
/// each other.
struct Participants {
  mpi::CommunicatorView comm;
  WaitMonitor* monitor = nullptr;
  Deadline::Duration timeout{600};

  [[nodiscard]] Deadline deadline() const { return Deadline{timeout}; }
  /// Verifies that all participants passed the same fields and that no participant has failed.
  void verify(std::string_view activity, const Agreement& agreement) const {
    agreement.verify(comm, *monitor, activity, deadline());
  }
  /// Verifies that no participant has failed. Collective over the participants; blocks.
  /// @param failure  The reason why this rank has failed. It is empty if the rank has not failed.
  /// @throws MismatchError  A participant failed. The error holds all failures, and its text is the
  ///                        same on every participant.
  /// @throws TimeoutError   Some participants did not call verify(). The error names them.
  void verify(std::string_view activity, const std::string& failure) const {
    Agreement agreement;
    if (!failure.empty()) agreement.fail(failure);
    verify(activity, agreement);
  }
};

}  // namespace rankmesh
