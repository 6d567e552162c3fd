// SPDX-License-Identifier: BSD-3-Clause
// The interface of transports, which carry operations.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/transport/waiter.hpp"

namespace rankmesh {

/// Represents an operation that was started. The buffers must stay valid until the operation is
/// complete. Do not destroy this object before then, because the transport may still use the
/// buffers.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Makes progress. Returns true once the operation is complete. Never blocks.
  virtual bool test() = 0;
  /// Device memory: makes the stream wait for the operation; the host does not wait.
  /// Host memory: does nothing.
  virtual void order_before(StreamRef) {}
  /// Calls test() until the operation is complete or the deadline has passed. Returns whether the
  /// operation is complete.
  RANKMESH_API bool wait(const Deadline& deadline);
};

/// Carries operations for one group. All members pass matching calls, in the same order.
/// Thread safety: one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Returns the name that routes use.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Returns whether the transport can carry the call. Each member chooses the transport without
  /// asking the others, so all members must get the same answer. Therefore the answer must not
  /// depend on anything that can differ between members, such as an address.
  [[nodiscard]] virtual bool supports(const Call& call) const = 0;
  /// Returns the reason why the transport does not support the call. explain() uses it.
  [[nodiscard]] virtual std::string why_not(const Call& call) const {
    return "it does not carry " + std::string{to_string(call.operation)} + " of this size or type";
  }
  /// Throws the exceptions that run() throws before it issues anything. It is called when an
  /// operation joins a batch, because the batch calls run() later.
  virtual void validate(const Call&) const {}

  /// Carries out the call. Host memory: blocks until this member's part is complete. Device memory:
  /// returns once the operation is queued on the call's stream.
  /// @param waiter  A transport that polls (see is_polled()) waits for late members through it.
  virtual void run(const Call& call, Waiter& waiter) = 0;
  /// Starts the call; does not block. The call itself may be destroyed afterwards; its
  /// buffers must stay valid.
  [[nodiscard]] virtual std::unique_ptr<Pending> start(const Call& call) = 0;

  /// Returns whether operations make progress inside calls of rankmesh only, and not inside other
  /// calls of MPI. In such a transport, run() waits through the Waiter that is passed to it.
  [[nodiscard]] virtual bool is_polled() const { return false; }
  /// Makes progress on operations that were started. Never blocks.
  virtual void advance() {}
  /// Tells the other members that this one makes no further calls. Local; the default does nothing.
  virtual void leave() {}
  /// Takes leave() back: the group stays open. Local; the default does nothing.
  virtual void stay() {}
  /// Tells the other members why this one will not complete its calls. Members that are in a call,
  /// or make one later, throw an error with the same text. Local; the default does nothing. Only
  /// the first reason in a group counts.
  virtual void give_up(const Error& why) { (void)why; }
  /// Compares the calls of all members after all of them have called leave(). Local.
  /// @throws MismatchError if the members made different calls, or different numbers of calls. The
  ///                       error is not thrown if an operation has already thrown it on this rank.
  virtual void compare_at_close() {}
  /// Returns whether the transport can carry the call directly between the members' symmetric
  /// buffers. If so, this transport is chosen before the routes are considered.
  [[nodiscard]] virtual bool uses_symmetric_memory(const Call&) const { return false; }
};

}  // namespace rankmesh
