// SPDX-License-Identifier: BSD-3-Clause
// The interface that guards the calls of a group.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/transport/transport.hpp"
#include "rankmesh/transport/waiter.hpp"

namespace rankmesh::detail {

/// Guards the calls of the members of one group: numbers and compares them, says when all members
/// have reached a call, and tells the members why one of them does not continue. A guard carries no
/// data. Its errors have the same text on all members.
///
/// There is one guard in the node's memory (ShmTransport, which compares its own calls in the first
/// step of each operation), one that exchanges collectives by messages (ExchangeGuard), and one for
/// messages between two members (MessageGuard). NoteGuard compares nothing. Used by one thread at a
/// time.
class CallGuard {
 public:
  /// Starts the operation that carries a call.
  using Carry = std::function<void()>;

  virtual ~CallGuard() = default;

  /// Returns the number of collective calls of the group so far. A transport of the group that
  /// carries a call without asking the guard adds 1.
  [[nodiscard]] virtual std::uint64_t& calls() { return calls_; }
  /// Blocks until all members, or both ends of a message, have reached a call.
  /// @param is_async  Whether this member starts the operation instead of blocking in it.
  /// @return whether any member starts the operation. Then all members must start it, because MPI
  ///         does not match a blocking collective with a non-blocking one.
  /// @throws MismatchError if the members make different calls, and what `waiter` throws.
  virtual bool meet(const Call& call, bool is_async, Waiter& waiter) = 0;
  /// Compares a call; does not block. The call may be destroyed afterwards.
  /// @param carry  Runs at once if MPI does not mix up the operation with the comparison, otherwise
  ///               as soon as the calls are equal, in the order of the calls. May be null.
  /// @return the comparison, whose test() throws MismatchError if the members make different calls;
  ///         null if nothing is compared.
  [[nodiscard]] virtual std::unique_ptr<Pending> start_comparison(const Call& call,
                                                                  Carry carry) = 0;
  /// Compares how the members end a call with a function of the program; does not block. Call it
  /// right after the comparison of the call. A member on which the function throws gives up
  /// instead.
  /// @param has_run  Whether the operation is complete on this member. It must stay valid until the
  ///                 result is complete.
  /// @return null if nothing is compared.
  [[nodiscard]] virtual std::unique_ptr<Pending> start_end(const Call&, const bool& /*has_run*/) {
    return nullptr;
  }

  /// Says that this member has failed and knows why. Members that can be told, throw too. Local.
  /// Only the first reason counts.
  virtual void give_up(const Error& why) = 0;
  /// Throws the error that ended the group early, if there is one. Local.
  /// @throws MismatchError if members made different calls.
  /// @throws TimeoutError if a member gave up an operation or left.
  virtual void throw_if_ended() {}
  /// Returns whether such an error is known on this member, even if it has been thrown. Local.
  [[nodiscard]] virtual bool has_ended() const { return false; }

  /// Sets a number that the other members learn by leave(). Call it before.
  virtual void bring(std::uint64_t /*number*/) {}
  /// Returns the sum of these numbers, modulo 2^64, once all members have left; nothing if this
  /// guard does not know it. Local.
  [[nodiscard]] virtual std::optional<std::uint64_t> brought_by_all() const { return std::nullopt; }
  /// Tells the other members that this member makes no further calls. Members that wait for it in a
  /// later call throw an error. Local.
  /// @param why  The reason, if this member leaves without closing the group; empty otherwise.
  virtual void leave(std::string_view why) = 0;
  /// Returns whether all members have called leave(); true if the guard does not know. As long as a
  /// member has not, other members may be in a collective of MPI that this member has not called.
  /// MPI could match a new collective on the group's communicator with that one. Local.
  /// @throws the error that throw_if_ended() throws.
  virtual bool have_all_left() { return true; }
  /// Returns the members that have not called leave(), as far as the guard knows. Local.
  [[nodiscard]] virtual std::vector<std::int64_t> not_left() const { return {}; }
  /// Reverses leave(): the group stays open. Local.
  virtual void stay() = 0;
  /// Compares the calls of all members after all of them have called leave(). Local.
  /// @throws MismatchError if the members made different calls, or different numbers of calls,
  ///                       unless this rank has thrown it before.
  virtual void compare_at_close() {}

 private:
  std::uint64_t calls_ = 0;
};

}  // namespace rankmesh::detail
