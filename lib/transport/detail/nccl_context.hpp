// SPDX-License-Identifier: BSD-3-Clause
// The state that the NCCL transports of one mesh share.
#pragma once

#include <memory>
#include <utility>

#include "rankmesh/device/captured_graphs.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/nccl/batch.hpp"
#include "rankmesh/device/nccl/call_watch.hpp"
#include "rankmesh/device/nccl/library.hpp"

namespace rankmesh {

/// The library, the device, the open batch and the captured graphs of one mesh. The mesh's device
/// backend and the transports share it; it refers to neither.
struct NcclContext {
  NcclContext(const nccl::Library& nccl_library, device::Claim device_claim)
      : library{nccl_library},
        claim{std::move(device_claim)},
        watch{library, claim.device()},
        batch{std::make_shared<nccl::Batch>(library, claim, watch)} {}

  /// Releases the device, so that another mesh of this process may use another device.
  void release() {
    claim = {};
    batch->release();
  }

  const nccl::Library& library;
  device::Claim claim;
  nccl::CallWatch watch;  ///< Limits the time of calls that block.
  const std::shared_ptr<nccl::Batch> batch;
  device::CapturedGraphs graphs;
};

}  // namespace rankmesh
