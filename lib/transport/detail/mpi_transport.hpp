// SPDX-License-Identifier: BSD-3-Clause
// The transport for host memory over MPI.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "rankmesh/mpi/communicator.hpp"
#include "routed_transport.hpp"

namespace rankmesh {

/// Carries all operations on host memory with MPI's own functions. Counts are 64-bit numbers. run()
/// calls the blocking functions of MPI, and start() calls the non-blocking functions. For small
/// messages, polling a non-blocking function takes about twice as long as calling the blocking
/// function.
///
/// Buffers can have any size. If a count is larger than `largest_count`, a reduction is divided
/// into pieces of `largest_count` elements, and any other operation uses a derived datatype. A
/// reduce_scatter whose blocks are larger than `largest_count` becomes one reduction for each piece
/// of each block. The counts and displacements of v-forms must be less than 2^31, except those of
/// reduce_scatter.
class RANKMESH_API MpiTransport final : public RoutedTransport {
 public:
  /// Creates a transport on the communicator of a group, which must outlive the transport. Local.
  /// @param largest_count  The largest count that is passed to an MPI function, from 1 to 2^31-1.
  ///                       Tests set a small value.
  /// @param calls  Where the collectives of the group are counted, if nothing else counts those of
  ///               this transport; null otherwise.
  /// @param polls  Whether run() calls the non-blocking functions, too, and polls. All operations
  ///               then use copies of the buffers, so that the memory of an operation that never
  ///               ends can be left behind.
  explicit MpiTransport(const mpi::CommunicatorView& comm,
                        std::int64_t largest_count = std::numeric_limits<std::int32_t>::max(),
                        std::uint64_t* calls = nullptr, bool polls = false);

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::mpi; }
  [[nodiscard]] bool supports(const Call& call) const override;
  void validate(const Call& call) const override;
  [[nodiscard]] bool is_polled(const Call&) const override { return polls_; }
  /// MPI returns errors to this object, even if the program has set another error handler on the
  /// communicator. This does not hold if several threads may call MPI.
  void run(const Call& call, Waiter& waiter) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] std::optional<std::int64_t> arrived(RankInGroup from, int tag) override;

 private:
  std::uint64_t count(const Call& call);
  void carry(const Call& call);
  void run_polled(const Call& call, Waiter& waiter);
  std::unique_ptr<Pending> start_in_place(const Call& call);

  std::uint64_t* calls_;
  mpi::CommunicatorView comm_;
  std::int64_t largest_count_;
  bool polls_;
  bool is_foreign_;  // whether the communicator has a handler of the program
};

}  // namespace rankmesh
