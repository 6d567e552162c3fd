// SPDX-License-Identifier: BSD-3-Clause
// Calls on device memory whose end is recorded.
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "rankmesh/transport/transport.hpp"
#include "record/detail/recorded_call.hpp"

namespace rankmesh::detail {

/// Notes in the record of this rank when the device has finished a call. The host checks for
/// finished calls at every eighth device call and whenever it makes progress. Therefore the
/// recorded end may be later than the true end, but never earlier.
class DeviceCalls {
 public:
  /// @param end  Is complete when the device has finished; null if the call was captured into a
  ///             CUDA graph.
  /// @param stream  The stream of the call.
  void follow(RecordedCall call, std::unique_ptr<Pending> end, StreamRef stream);
  /// Checks the calls in the order in which they were made. An error ends the call's entry as
  /// failed; the program learns of it by its next call.
  void look() noexcept;
  /// Forgets the calls, before the device is released. Calls that have not ended count as failed.
  void clear() noexcept { calls_.clear(); }

 private:
  struct Followed {
    RecordedCall call;
    std::unique_ptr<Pending> end;
    const void* stream;
  };
  [[nodiscard]] std::size_t ended();
  bool forget_ended() noexcept;

  std::deque<Followed> calls_;
  std::size_t since_look_ = 0;
};

}  // namespace rankmesh::detail
