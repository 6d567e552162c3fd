// SPDX-License-Identifier: BSD-3-Clause
#include "detail/progress_in_mpi.hpp"

#include <chrono>

#include "base/detail/blocked_signals.hpp"

namespace rankmesh::detail {
namespace {

// The pause between two checks. It leaves the core to the thread in MPI, and it is short compared
// with the time that a rank waits for a collective.
constexpr std::chrono::microseconds pause_between_looks{50};

}  // namespace

ProgressInMpi::ProgressInMpi(MeshRuntime& current,
                             const std::vector<std::shared_ptr<MeshRuntime>>& meshes) {
  for (const auto& runtime : meshes) {
    if (!runtime->in_flight.has_polled_messages()) continue;
    if (runtime.get() == &current || locks_.emplace_back(*runtime).is_held())
      operations_.push_back(&runtime->in_flight);
  }
  if (operations_.empty()) return;
  const BlockedSignals blocked;
  thread_ = std::thread{[this] {
    while (!has_ended_.load(std::memory_order_acquire)) {
      for (OperationsInFlight* operations : operations_) operations->advance_messages_beside_mpi();
      std::this_thread::sleep_for(pause_between_looks);
    }
  }};
}

ProgressInMpi::~ProgressInMpi() {
  if (!thread_.joinable()) return;
  has_ended_.store(true, std::memory_order_release);
  thread_.join();
}

}  // namespace rankmesh::detail
