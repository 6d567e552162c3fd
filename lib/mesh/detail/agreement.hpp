// Do all ranks mean the same, and did none of them fail? Asked before the first collective that
// depends on it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh::detail {

/// An ordered list of fields, and at most one failure of this rank.
///
/// Phase 1 is one non-blocking reduction of 40 bytes. Only where the ranks differ or one failed,
/// phase 2 gathers the fields on rank 0 and broadcasts its finding: O(P x length of the fields)
/// bytes there.
class Agreement {
 public:
  /// @param text  the value for people; what is compared is the hash.
  void add(std::string field, Hash128 hash, std::string text);
  void add(std::string field, const std::string& text) {
    add(std::move(field), hash_bytes(text), text);
  }
  /// This rank cannot go on; it still takes part.
  void fail(std::string message) { failure_ = std::move(message); }

  /// Collective over the communicator; blocks until all ranks have come or the deadline has passed.
  /// @throws MismatchError, the same on every rank: the fields that differ, each variant with its
  /// ranks, the
  ///         outliers first (on a tie whoever differs from rank 0), or the ranks that failed with
  ///         their messages.
  /// @throws TimeoutError naming the ranks that did not come.
  void settle(const mpi::CommunicatorView& comm, WaitMonitor& monitor, std::string_view what,
              const Deadline& deadline) const;

 private:
  struct Field {
    std::string name;
    Hash128 hash;
    std::string text;
  };
  [[nodiscard]] std::string record() const;
  static std::string finding(std::string_view what, const std::vector<std::string>& records);

  std::vector<Field> fields_;
  std::string failure_;
};

}  // namespace rankmesh::detail
