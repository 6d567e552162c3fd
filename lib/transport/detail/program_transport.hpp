// SPDX-License-Identifier: BSD-3-Clause
// A transport of the program, as the other parts of rankmesh see it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rankmesh/mpi/communicator.hpp"
#include "transport/detail/mpi_transport.hpp"

namespace rankmesh {

/// Carries collectives on host memory over a transport of the program. It is used behind a
/// GuardedTransport, which synchronises the members before each call: so the transport of the
/// program may block until its operation is complete, and needs no deadline. Calls on device memory
/// only queue work. Exceptions of the transport become errors that name it.
class ProgramTransport final : public RoutedTransport {
 public:
  struct TransportIdentity {
    std::string name;         ///< Of the factory.
    record::Carrier carrier;  ///< What the record calls the transport.
  };

  /// @param comm  For members of which only some use the asynchronous form.
  ProgramTransport(TransportIdentity identity, std::unique_ptr<Transport> own,
                   mpi::CommunicatorView comm, std::int64_t largest_count)
      : identity_{std::move(identity)}, own_{std::move(own)}, mpi_{comm, largest_count} {}

  [[nodiscard]] std::string_view name() const override { return identity_.name; }
  [[nodiscard]] record::Carrier carrier() const override { return identity_.carrier; }
  [[nodiscard]] bool supports(const Call& call) const override;
  [[nodiscard]] std::string why_not(const Call& call) const override;
  void run(const Call& call, Waiter& waiter) override;
  /// Starts a call. If the transport has no form with _async, it runs over MPI, because members
  /// that use this form have chosen another transport.
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  void give_up(const Error& why) override;

 private:
  class ProgramCall;
  [[noreturn]] void fail(const std::string& activity) const;

  TransportIdentity identity_;
  std::unique_ptr<Transport> own_;
  MpiTransport mpi_;
};

}  // namespace rankmesh
