// SPDX-License-Identifier: BSD-3-Clause
// The way in which a transport waits for other members.
#pragma once

#include <cstdint>
#include <functional>

#include "rankmesh/transport/call.hpp"

namespace rankmesh {

/// Waits on behalf of one group's operations. The group's coordinator passes itself to
/// Transport::run(), so a transport that polls needs no deadline, no clock and no names of its own.
class Waiter {
 public:
  /// Polls `done` until it returns true. Other operations that this process has in flight make
  /// progress meanwhile. Call wait() only after a short wait was not enough, because it reads
  /// clocks and answers other ranks' questions.
  /// @param call    The operation that waits, for messages.
  /// @param number  The number of the operation within the transport and the group. It is the same
  ///                on all members.
  /// @throws TimeoutError  The group's deadline has passed. The error names the missing members,
  /// and the group is broken afterwards.
  virtual void wait(const Call& call, std::uint64_t number, const std::function<bool()>& done) = 0;

 protected:
  ~Waiter() = default;
};

}  // namespace rankmesh
