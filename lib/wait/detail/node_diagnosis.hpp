// SPDX-License-Identifier: BSD-3-Clause
// What the records of this node say about a mesh that cannot continue.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "node_board.hpp"
#include "record/detail/recorder.hpp"

namespace rankmesh::detail {

/// Diagnoses the ranks of a mesh on this node from their records, as `meshinfo trace` does, for an
/// error that is about to be thrown. Thread safety: any thread may call read().
class NodeDiagnosis {
 public:
  /// @param recorder  The recorder of this rank. If it is null, there is no diagnosis.
  explicit NodeDiagnosis(std::shared_ptr<const Recorder> recorder)
      : recorder_{std::move(recorder)} {}

  /// What the error says itself.
  enum class Known : std::uint8_t {
    missing,  ///< The ranks that are missing, and what each of them does.
    circle,   ///< The ranks that wait for each other, and in which calls.
  };
  /// Returns text to append to the hint of an error: diagnosis_mark and the sentences that the
  /// error does not say itself. It is empty if there are none, or if read() was called before,
  /// because later errors result from the first error. Local; other ranks need not answer. Takes at
  /// most about 0.3 s, usually a few milliseconds. Does not throw.
  [[nodiscard]] std::string read(const NodeBoard& board, Known known) const noexcept;

 private:
  std::shared_ptr<const Recorder> recorder_;
  mutable std::atomic<bool> was_read_{false};
};

}  // namespace rankmesh::detail
