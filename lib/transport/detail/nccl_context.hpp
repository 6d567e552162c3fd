// SPDX-License-Identifier: BSD-3-Clause
// The state that the NCCL transports of one mesh share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "rankmesh/device/captured_graphs.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/nccl/batch.hpp"
#include "rankmesh/device/nccl/call_watch.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// The library, the device, the open batch and the captured graphs of one mesh. The mesh's device
/// backend and the transports share it; it refers to neither.
struct NcclContext {
  NcclContext(const nccl::Library& nccl_library, device::Claim device_claim,
              std::vector<int> compute_capabilities_of_ranks)
      : library{nccl_library},
        claim{std::move(device_claim)},
        compute_capabilities{std::move(compute_capabilities_of_ranks)},
        watch{library, claim.device()},
        batch{std::make_shared<nccl::Batch>(library, claim, watch)} {}

  /// Returns an event. Events are kept for later calls, because it takes CUDA longer to create one
  /// than to record it.
  device::Event take_event() {
    if (events_.empty()) {
      const device::MakeCurrent here{claim.device()};
      return device::Event{};
    }
    device::Event event = std::move(events_.back());
    events_.pop_back();
    return event;
  }
  void give_back(device::Event event) noexcept {
    if (!is_released_ && events_.size() < most_events) events_.push_back(std::move(event));
  }

  /// Releases the device, so that another mesh of this process may use another device.
  void release() {
    claim = {};
    events_.clear();
    is_released_ = true;
    batch->release();
  }

  /// Returns the least compute capability of the devices of these ranks: 90 for 9.0.
  [[nodiscard]] int least_compute_capability(const RankSet& ranks) const {
    int least = std::numeric_limits<int>::max();
    for (const Rank rank : ranks)
      least = std::min(least, compute_capabilities[static_cast<std::size_t>(rank.value())]);
    return least;
  }

  const nccl::Library& library;
  device::Claim claim;
  const std::vector<int> compute_capabilities;  ///< Of the device of each rank of the mesh.
  nccl::CallWatch watch;                        ///< Limits the time of calls that block.
  const std::shared_ptr<nccl::Batch> batch;
  device::CapturedGraphs graphs;

 private:
  static constexpr std::size_t most_events = 256;
  std::vector<device::Event> events_;
  bool is_released_ = false;
};

}  // namespace rankmesh
