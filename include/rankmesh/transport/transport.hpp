// One way to carry an operation.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh {

/// An operation under way. Buffers must stay valid until it is complete.
/// Destroying one that is not complete leaves its memory lent to the transport.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Makes progress; true once the operation is complete. Never blocks.
  virtual bool test() = 0;
  /// Device memory: the stream waits for the operation, the host does not. Host memory: nothing.
  virtual void order_before(StreamRef) {}
  /// Tests until complete or late; returns whether it is complete.
  RANKMESH_API bool wait(const Deadline& deadline);
};

/// Carries operations for one group. All members call with matching records, in the same order.
/// One thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether it can carry the call. Depends only on what all members agree on, never on addresses:
  /// the router asks it on every member, and all must come to the same answer.
  [[nodiscard]] virtual bool supports(const Call& call) const = 0;
  /// What run() would refuse before it issues anything, thrown now: the call is issued later.
  virtual void validate(const Call&) const {}
  /// Why it does not support the call, for explanations.
  [[nodiscard]] virtual std::string why_not(const Call& call) const {
    return "it does not carry " + std::string{to_string(call.operation)} +
           " of such a size or type";
  }
  /// Carries the call to its end; blocks.
  virtual void run(const Call& call) = 0;
  /// Begins; does not block. The record itself may go, its buffers may not.
  [[nodiscard]] virtual std::unique_ptr<Pending> start(const Call& call) = 0;
};

}  // namespace rankmesh
