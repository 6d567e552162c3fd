// SPDX-License-Identifier: BSD-3-Clause
// The transport for host memory over MPI.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh {

/// Carries all operations on host memory through MPI's own collectives, with 64-bit counts. run()
/// calls the blocking functions, because at small sizes a non-blocking function with a test costs
/// about twice as much as a blocking function. start() calls the non-blocking functions.
///
/// Above `largest_count` elements, reductions are divided into pieces of that size, and the other
/// operations use one derived datatype, so buffers can have any size. A reduce_scatter whose blocks
/// are larger than `largest_count` becomes one reduction per block and piece. The counts and
/// displacements of v-forms must be below 2^31.
class RANKMESH_API MpiTransport final : public Transport {
 public:
  static constexpr std::int64_t default_largest_count = std::int64_t{1} << 30;

  /// Creates a transport on a communicator, which must outlive the transport. Local.
  /// @param largest_count  The largest number of elements in one count of MPI, from 1 to 2^31-1.
  ///                       Tests set it to small values.
  explicit MpiTransport(mpi::CommunicatorView comm,
                        std::int64_t largest_count = default_largest_count);

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] bool supports(const Call& call) const override;
  void run(const Call& call, Waiter&) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;

 private:
  mpi::CommunicatorView comm_;
  std::int64_t largest_count_;
};

}  // namespace rankmesh
