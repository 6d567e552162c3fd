// SPDX-License-Identifier: BSD-3-Clause
// The guard of groups whose calls are not compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rankmesh/transport/mpi_transport.hpp"
#include "transport/detail/note_guard.hpp"

namespace rankmesh::detail {

/// Compares nothing. Members wait for each other in a barrier of MPI, and MPI's transport counts
/// the calls. So meet() does not learn what the other members do, who must use the same form of a
/// call. A transport that compares calls itself tells the members by this guard what it has
/// found.
class BarrierGuard final : public NoteGuard {
 public:
  /// @param mpi  The transport of the same group. It must outlive this object.
  BarrierGuard(const mpi::CommunicatorView& comm, GroupMembers members, MpiTransport& mpi)
      : NoteGuard{comm, std::move(members)}, mpi_{mpi} {}

  [[nodiscard]] std::uint64_t calls() const override { return mpi_.calls(); }
  bool meet(const Call& call, bool is_async, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start_comparison(const Call& call, Carry carry) override;
  void leave(std::string_view) override {}
  void compare_at_close() override { throw_if_ended(); }

 private:
  void take(int, const Note&, std::string) override {}

  MpiTransport& mpi_;
};

}  // namespace rankmesh::detail
