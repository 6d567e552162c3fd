// SPDX-License-Identifier: BSD-3-Clause
// The interface that compares the members' calls when another transport carries them out.
#pragma once

#include <memory>

#include "rankmesh/transport/transport.hpp"

namespace rankmesh::detail {

/// Compares calls of a group that another transport carries, for example calls on device memory.
class CallComparison {
 public:
  /// Starts the comparison of a call; does not block. The call may be destroyed afterwards. test()
  /// of the result returns true once all members, or both ends of a message, have reached the call.
  /// It throws MismatchError if they make different calls.
  [[nodiscard]] virtual std::unique_ptr<Pending> start_comparison(const Call& call) = 0;

 protected:
  ~CallComparison() = default;
};

}  // namespace rankmesh::detail
