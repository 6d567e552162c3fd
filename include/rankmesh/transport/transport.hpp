// SPDX-License-Identifier: BSD-3-Clause
// The interface of transports, which carry out operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/transport/waiter.hpp"

namespace rankmesh {

/// Reports that a transport of the program has failed in a call, or could not be opened. The
/// message contains the name of the transport and the text of its exception, which is nested.
class RANKMESH_API TransportError : public LibraryError {
 public:
  using LibraryError::LibraryError;  ///< Creates an error from its text and a hint, which may be
                                     ///< empty.
};

/// Represents an operation that was started. The buffers and this object must exist until the
/// operation is complete, because the transport may still use them.
class RANKMESH_API Pending {
 public:
  virtual ~Pending() = default;
  /// Makes progress. Returns true once the operation is complete. Never blocks.
  virtual bool test() = 0;
  /// Returns the members, as ranks in the group, without which the operation cannot continue. The
  /// result is empty if they are not known.
  [[nodiscard]] virtual std::vector<std::int64_t> awaited() const { return {}; }
  /// Returns whether MPI has begun the operation, so that it may use the buffers until the
  /// operation is complete.
  [[nodiscard]] virtual bool is_in_mpi() const { return false; }
  /// Returns whether the operation needs further calls of test(), so that other members may wait
  /// for them. It is false if MPI carries out the rest by itself, inside any of its functions.
  /// rankmesh asks once, when the operation has been started. While an operation needs test(), this
  /// rank blocks inside MPI only in collectives whose members have all arrived.
  [[nodiscard]] virtual bool is_polled() const { return true; }
  /// Makes progress without MPI, as far as that is possible. In contrast to the other functions,
  /// another thread may call it while the thread that uses the mesh is blocked inside MPI. For the
  /// transports of rankmesh.
  virtual void advance_beside_mpi() {}
  /// Begins to cancel a receive. Local; never blocks. Afterwards test() returns true when the
  /// receive has ended, and was_cancelled() says how. By default the operation continues. Only the
  /// transports of rankmesh carry messages on host memory, so transports of a program do not
  /// override this function.
  virtual void cancel() {}
  /// Returns whether cancel() has ended the receive before a message was matched with it. The
  /// buffer is then unchanged.
  [[nodiscard]] virtual bool was_cancelled() const { return false; }
  /// For an operation on device memory, makes the stream wait for the operation; the host does not
  /// wait. For an operation on host memory, does nothing.
  virtual void order_before(StreamRef) {}
  /// Calls test() until the operation is complete or the deadline has passed. Returns whether the
  /// operation is complete.
  bool wait(const Deadline& deadline);
};

/// Carries out operations of one group. All members must pass matching calls in the same order.
/// Thread safety: one thread at a time.
///
/// A program can add a transport of its own: it derives from this class and passes a factory to
/// MeshOptions::transports (docs/transports.md shows how). Such a transport implements supports()
/// and run(). It may also implement why_not(), give_up(), and for asynchronous forms
/// has_async_forms() and start(). These are all functions of the class, so that no other name of
/// the transport can collide with one of them.
class RANKMESH_API Transport {
 public:
  virtual ~Transport() = default;

  /// Returns whether the transport can carry out the call. Each member chooses a transport without
  /// asking the other members, and all must choose the same transport. Therefore the result must
  /// not depend on anything that can differ between members, such as an address. If the result is
  /// false, the next rule of the routes decides.
  [[nodiscard]] virtual bool supports(const Call& call) const = 0;
  /// Returns the reason why the transport does not support the call. GroupCoordinator::explain()
  /// reports this reason.
  [[nodiscard]] virtual std::string why_not(const Call& call) const {
    return "it does not carry " + std::string{to_string(call.operation)} + " of this size or type";
  }

  /// Carries out the call. On host memory, blocks until this member's part is complete. On device
  /// memory, returns once the operation is queued on the call's stream.
  ///
  /// For a transport of a program, rankmesh checks the call, compares it with the calls of the
  /// other members, and waits with the deadline until all members have reached the call. Therefore
  /// run() never waits for a late member, and all members are inside run() of the same call. If
  /// run() throws anything, the group is broken, and the call throws a TransportError.
  /// @param waiter  The transports of rankmesh call this object to wait for late members. A
  ///                transport of a program does not need it.
  virtual void run(const Call& call, Waiter& waiter) = 0;

  /// Returns whether the transport of a program implements start(). If it does not, the
  /// asynchronous forms use the next transport of the routes that can carry them.
  [[nodiscard]] virtual bool has_async_forms() const { return false; }
  /// Starts the call; does not block. The Call object may be destroyed afterwards, but its buffers
  /// must stay valid until the operation is complete. The other members may not have reached the
  /// call yet. Operations must be able to proceed in the order in which they were started.
  /// @throws UsageError if the transport does not override this function.
  [[nodiscard]] virtual std::unique_ptr<Pending> start(const Call& call);

  /// Tells the other members why this member will not complete its calls. Members that are in a
  /// call, or make one later, throw an error. Local; the default does nothing. Only the first
  /// reason in a group counts. A transport of a program ends its connections here, so that members
  /// inside run() do not wait any longer.
  virtual void give_up(const Error& why) { (void)why; }
};

}  // namespace rankmesh
