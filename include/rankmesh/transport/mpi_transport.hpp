// Host memory over MPI.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh {

/// Every operation on host memory, of 64-bit counts, through MPI's own collectives. `run` uses the
/// blocking functions (a non-blocking one with a test costs about twice as much at small sizes),
/// `start` the non-blocking ones.
///
/// Above `largest_count` elements reductions go in pieces of that size and everything else as one
/// derived type, so no buffer is too large. reduce_scatter of such blocks is one reduction per
/// block and piece. v-forms take counts and displacements below 2^31.
class RANKMESH_API MpiTransport final : public Transport {
 public:
  static constexpr std::int64_t default_largest_count = std::int64_t{1} << 30;

  /// @param largest_count  elements given to MPI in one count; 1 .. 2^31-1. Tests make it small.
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
