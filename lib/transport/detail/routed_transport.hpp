// SPDX-License-Identifier: BSD-3-Clause
// A transport as routes and coordinators see it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rankmesh/base/index.hpp"
#include "rankmesh/record/record.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh {

/// A transport with what the router, the coordinators and the record of a rank ask of it besides
/// carrying calls. All transports of rankmesh derive from this class, so that the public base has
/// only what a program writes. ProgramTransport answers for a transport of the program.
class RoutedTransport : public Transport {
 public:
  /// Returns the name of the transport in routes.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Returns the name of the transport in the record of this rank.
  [[nodiscard]] virtual record::Carrier carrier() const = 0;
  /// Returns how the transport carries a call that it supports, if that depends on the machine;
  /// otherwise an empty text. GroupCoordinator::explain() reports it.
  [[nodiscard]] virtual std::string how(const Call&) const { return {}; }
  /// Makes the checks that run() makes before it issues anything, and throws the same exceptions. A
  /// coordinator calls validate() when an operation joins a batch, because the batch calls run()
  /// only at its end.
  virtual void validate(const Call&) const {}
  /// Returns the size in bytes of the next message from a member with this tag, if the message has
  /// arrived, so that a receive would not wait for its sender. Never blocks. The default returns
  /// nothing.
  [[nodiscard]] virtual std::optional<std::int64_t> arrived(RankInGroup from, int tag) {
    (void)from, (void)tag;
    return std::nullopt;
  }
  /// Returns whether run() waits for late members through its Waiter. If not, run() may block
  /// inside MPI until they have come.
  [[nodiscard]] virtual bool is_polled(const Call&) const { return false; }
  /// Returns whether the members can copy directly between their symmetric buffers in this call. If
  /// so, this transport carries the call, whatever the routes say.
  [[nodiscard]] virtual bool uses_symmetric_memory(const Call&) const { return false; }
};

}  // namespace rankmesh
