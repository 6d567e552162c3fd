// SPDX-License-Identifier: BSD-3-Clause
// The interface through which a transport waits for other members.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rankmesh/transport/call.hpp"

namespace rankmesh {

class Pending;

namespace detail {
struct Publication;
}  // namespace detail

/// Waits on behalf of one group's operations. Transport::run() gets a Waiter, so a polled transport
/// needs no deadline and no clock, and need not know the names of the members.
class Waiter {
 public:
  /// Polls `done` until it returns true. Meanwhile the other operations of this process that are in
  /// flight make progress. Before a transport calls wait(), it should poll for a short time itself,
  /// because wait() also reads clocks and answers questions of other ranks.
  /// @param call    The operation that waits; used in messages.
  /// @param number  The number of the operation among the transport's operations in the group. It
  ///                is the same on all members.
  /// @param awaited  Returns the members, as ranks in the group, without which the operation cannot
  ///                 continue; null if they are not known.
  /// @param may_give_up  See WaitPoint; null if the transport need not decide.
  /// @throws MismatchError if ranks wait for each other in a circle that contains this rank.
  /// @throws TimeoutError if the group's deadline passes. The error names the missing members, and
  /// the group is broken afterwards.
  virtual void wait(const Call& call, std::uint64_t number, const std::function<bool()>& done,
                    const std::function<std::vector<std::int64_t>()>& awaited,
                    const std::function<bool()>& may_give_up) = 0;

  /// Polls an operation until it is complete, as wait() does. If that fails, MPI may still use the
  /// memory of the operation. The operation is then leaked, and if MPI has begun it, MPI is not
  /// finalised.
  /// @throws the errors that wait() and Pending::test() throw.
  virtual void finish(const Call& call, std::uint64_t number, std::unique_ptr<Pending> pending) = 0;

  /// Returns a call in words, for messages.
  [[nodiscard]] virtual std::string activity_of(const Call& call) const = 0;

  /// Where the calls of the group are published; null if nowhere.
  const detail::Publication* publication = nullptr;

 protected:
  ~Waiter() = default;
};

}  // namespace rankmesh
