// SPDX-License-Identifier: BSD-3-Clause
// A transport of the program, as the other parts of rankmesh see it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/transport/mpi_transport.hpp"
#include "transport/detail/call_exchange.hpp"
#include "transport/detail/shm_transport.hpp"

namespace rankmesh {

/// Carries collectives on host memory over a transport of the program. Before each call, the
/// members synchronise: they compare their calls, and wait for late members with the deadline.
/// Therefore the transport of the program may block until its operation is complete, and needs no
/// deadline. Calls on device memory are passed on as they are, because they only queue work.
class ProgramTransport final : public Transport {
 public:
  /// How the members synchronise. Exactly one pointer is not null; the object must outlive the
  /// transport.
  struct Meeting {
    ShmTransport* shared = nullptr;            ///< In the group's shared memory.
    detail::CallExchange* exchange = nullptr;  ///< With the option `check`: by messages.
    MpiTransport* mpi = nullptr;  ///< Without: by a barrier. Its calls are the group's.
  };
  struct Identity {
    std::string name;         ///< Of the factory.
    record::Carrier carrier;  ///< What the record calls the transport.
  };

  /// @param comm  For members of which only some use the asynchronous form.
  ProgramTransport(Identity identity, std::unique_ptr<Transport> own, Meeting meeting,
                   mpi::CommunicatorView comm, std::int64_t largest_count);

  [[nodiscard]] std::string_view name() const override { return identity_.name; }
  [[nodiscard]] record::Carrier carrier() const override { return identity_.carrier; }
  [[nodiscard]] bool supports(const Call& call) const override;
  [[nodiscard]] std::string why_not(const Call& call) const override;
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] bool is_polled() const override { return true; }
  void give_up(const Error& why) override { own_->give_up(why); }

 private:
  class PendingCall;
  [[nodiscard]] std::uint64_t next_number() const;
  void queue(const Call& call, Waiter& waiter);
  bool meet(const Call& call, Waiter& waiter);
  bool meet_by_exchange(const Call& call, Waiter& waiter);
  void carry(const Call& call, Waiter& waiter, std::uint64_t number);
  [[noreturn]] void fail(const std::string& activity) const;

  Identity identity_;
  std::unique_ptr<Transport> own_;
  Meeting meeting_;
  MpiTransport mpi_;
};

}  // namespace rankmesh
