// Verifies that all ranks mean the same and that none has failed, before a collective depends on
// it.
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

/// An ordered list of fields that must be the same on all ranks, and at most one failure of this
/// rank.
///
/// Phase 1 is one non-blocking reduction of 40 bytes. Phase 2 takes place only where the ranks
/// differ or one of them has failed: rank 0 gathers the fields and broadcasts what it finds, which
/// costs O(ranks x length of the fields) bytes there.
class RANKMESH_API Agreement {
 public:
  /// Adds a field. @param text  The value in words; the hash is what is compared.
  void add(std::string field, Hash128 hash, std::string text);
  void add(std::string field, const std::string& text) {
    add(std::move(field), hash_bytes(text), text);
  }
  /// Says that this rank cannot go on. It must call verify() all the same.
  void fail(std::string message) { failure_ = std::move(message); }

  /// Compares the ranks. Collective over the communicator; blocks until all ranks have come or the
  /// deadline has passed.
  /// @param activity  Names what depends on the agreement, for messages.
  /// @throws MismatchError, the same on every rank: the fields that differ, each variant with its
  /// ranks
  ///         and the outliers first (on a tie the ranks that differ from rank 0), or the ranks that
  ///         failed with their messages.
  /// @throws TimeoutError naming the ranks that did not come.
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

/// The ranks that take part in a step, and how they wait for each other.
struct Participants {
  mpi::CommunicatorView comm;
  WaitMonitor* monitor = nullptr;
  Deadline::Duration timeout{600};

  [[nodiscard]] Deadline deadline() const { return Deadline{timeout}; }
  /// Verifies that all participants passed the same fields and that none has failed.
  void verify(std::string_view activity, const Agreement& agreement) const {
    agreement.verify(comm, *monitor, activity, deadline());
  }
  /// Verifies that no participant has failed. Collective over the participants; blocks.
  /// @param failure  Why this rank cannot go on; empty when it can.
  /// @throws MismatchError with the failures, the same on every participant; TimeoutError.
  void verify(std::string_view activity, const std::string& failure) const {
    Agreement agreement;
    if (!failure.empty()) agreement.fail(failure);
    verify(activity, agreement);
  }
};

}  // namespace rankmesh
