// SPDX-License-Identifier: BSD-3-Clause
// MPI inside a node, after the members have compared their calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/transport/mpi_transport.hpp"
#include "transport/detail/shm_transport.hpp"

namespace rankmesh {

/// Carries operations over MPI for a group inside one node. Before each collective, the members
/// compare the call in shared memory (see shm::Meeting), so a mistake is found before MPI can
/// return wrong data or wait for ever. Messages between two members go to MPI at once.
class ComparedTransport final : public Transport {
 public:
  /// @param comparison  The transport of the same group. It must outlive this object.
  ComparedTransport(const mpi::CommunicatorView& comm, std::int64_t largest_count,
                    ShmTransport& comparison)
      : mpi_{comm, largest_count}, comparison_{comparison} {}

  [[nodiscard]] std::string_view name() const override { return mpi_.name(); }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::mpi; }
  [[nodiscard]] bool supports(const Call& call) const override { return mpi_.supports(call); }
  [[nodiscard]] std::string why_not(const Call& call) const override { return mpi_.why_not(call); }
  void validate(const Call& call) const override { mpi_.validate(call); }
  void run(const Call& call, Waiter& waiter) override;
  /// Starts both the comparison step (meeting) and the operation of MPI, so that the operation also
  /// makes progress in the program's own calls of MPI. test() tests the operation of MPI only after
  /// the comparison step is complete.
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  /// Starts the operation of MPI after the comparison step, so that after a mistake no operation of
  /// MPI still uses the buffers.
  [[nodiscard]] std::unique_ptr<Pending> start_to_wait(const Call& call) override;
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag) override {
    return mpi_.arrived(from, tag);
  }
  /// Starts the comparison of a collective that another transport carries; see CallComparison.
  [[nodiscard]] std::unique_ptr<Pending> start_comparison(const Call& call);

 private:
  MpiTransport mpi_;
  ShmTransport& comparison_;
};

}  // namespace rankmesh
