// One way to carry an operation.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/transport/waiter.hpp"

namespace rankmesh {

/// An operation that was started. Its buffers must stay valid until it is complete. Destroying one
/// that is not complete is an error of the caller: the transport may still use the buffers.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Makes progress. Returns true once the operation is complete. Never blocks.
  virtual bool test() = 0;
  /// Device memory: makes the stream wait for the operation; the host does not wait. Host memory:
  /// does nothing.
  virtual void order_before(StreamRef) {}
  /// Tests until the operation is complete or the deadline has passed. Returns whether it is
  /// complete.
  RANKMESH_API bool wait(const Deadline& deadline);
};

/// Carries operations for one group. All members call with matching records, in the same order.
/// Thread safety: one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Returns the name that routes use.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Returns whether it can carry the call. The router asks on every member, and all must come to
  /// the same answer, so the answer may depend only on what all members agree on: never on an
  /// address.
  [[nodiscard]] virtual bool supports(const Call& call) const = 0;
  /// Returns why it does not support the call, for explanations.
  [[nodiscard]] virtual std::string why_not(const Call& call) const {
    return "it does not carry " + std::string{to_string(call.operation)} + " of this size or type";
  }
  /// Throws what run() would throw before it issues anything. Called for operations of a batch,
  /// which are issued later.
  virtual void validate(const Call&) const {}

  /// Carries the call to its end; blocks. On device memory it returns once the operation is queued
  /// on the call's stream.
  /// @param waiter  Waits for members that are late, if the transport polls (see is_polled()).
  virtual void run(const Call& call, Waiter& waiter) = 0;
  /// Begins the call; does not block. The record itself may go afterwards, its buffers may not.
  [[nodiscard]] virtual std::unique_ptr<Pending> start(const Call& call) = 0;

  /// Returns whether operations make progress only inside calls of rankmesh: nothing else in the
  /// process (such as MPI's own progress) carries them on. run() then waits through its Waiter.
  [[nodiscard]] virtual bool is_polled() const { return false; }
  /// Makes progress on operations that were started. Never blocks.
  virtual void advance() {}
  /// Returns whether it carries the call directly between the members' symmetric buffers. Such a
  /// transport is chosen before any route.
  [[nodiscard]] virtual bool uses_symmetric_memory(const Call&) const { return false; }
};

}  // namespace rankmesh
