// SPDX-License-Identifier: BSD-3-Clause
// MPI with the option `check`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/transport/mpi_transport.hpp"
#include "transport/detail/call_comparison.hpp"
#include "transport/detail/call_exchange.hpp"
#include "transport/detail/call_variants.hpp"
#include "transport/detail/compared_transport.hpp"
#include "transport/detail/message_comparison.hpp"
#include "transport/detail/shm_transport.hpp"

namespace rankmesh {

/// Carries operations over MPI, and compares every call before MPI gets it: collectives in the
/// group's shared memory, or by messages if it has none; messages between two members by headers.
class CheckedTransport final : public Transport, public detail::CallComparison {
 public:
  struct Options {
    std::int64_t largest_count = MpiTransport::default_largest_count;
    /// Whether blocking operations have a deadline, so that MPI's blocking functions must not be
    /// called.
    bool has_deadline = false;
  };
  /// @param shared  The transport of the same group in shared memory, which must outlive this
  ///                object; null if it has none.
  CheckedTransport(const mpi::CommunicatorView& comm, Options options, detail::GroupMembers members,
                   ShmTransport* shared);

  [[nodiscard]] std::string_view name() const override { return mpi_.name(); }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::mpi; }
  [[nodiscard]] bool supports(const Call& call) const override { return mpi_.supports(call); }
  [[nodiscard]] std::string why_not(const Call& call) const override { return mpi_.why_not(call); }
  void validate(const Call& call) const override { mpi_.validate(call); }
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] std::unique_ptr<Pending> start_comparison(const Call& call) override;
  /// Returns the object that compares collectives by messages; null with shared memory.
  [[nodiscard]] detail::CallExchange* exchange() const { return exchange_.get(); }

  [[nodiscard]] bool is_polled() const override { return true; }
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag) override {
    return messages_.arrived(from, tag);
  }
  [[nodiscard]] std::uint64_t calls() const override { return exchange_ ? exchange_->calls() : 0; }
  void leave(std::string_view why) override;
  bool have_all_left() override;
  void stay() override;
  void give_up(const Error& why) override;
  void compare_at_close() override;
  void throw_if_ended() override;

 private:
  class PendingCollective;
  class PendingMessage;
  void run_message(const Call& call, Waiter& waiter);
  void run_collective(const Call& call, Waiter& waiter);
  void run_in_mpi(const Call& call, Waiter& waiter, detail::RecordedCall& recorded);

  Options options_;
  MpiTransport mpi_;
  ShmTransport* shared_;
  std::unique_ptr<ComparedTransport> inside_;       // with shared memory
  std::unique_ptr<detail::CallExchange> exchange_;  // without
  detail::MessageComparison messages_;
};

}  // namespace rankmesh
