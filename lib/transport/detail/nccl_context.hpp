// SPDX-License-Identifier: BSD-3-Clause
// The state that the NCCL transports of one mesh share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
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

/// The library, the device, the communicators, the open batch and the captured graphs of one mesh.
/// The mesh's device backend and the transports share it; it refers to neither.
struct NcclContext final : nccl::CallWatch::Owner {
  /// @param log  Takes warnings. May be called by another thread.
  NcclContext(const nccl::Library& nccl_library, device::Claim device_claim,
              std::vector<int> compute_capabilities_of_ranks,
              std::function<void(const std::string&)> log)
      : library{nccl_library},
        claim{std::move(device_claim)},
        compute_capabilities{std::move(compute_capabilities_of_ranks)},
        watch{library, claim.device(), *this},
        batch{std::make_shared<nccl::Batch>(library, claim, watch)},
        log_{std::move(log)} {}

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

  ~NcclContext() override { watch.stop(); }

  /// Notes a communicator of the mesh, until forget() is called.
  void add(nccl::Communicator& comm) {
    const std::lock_guard lock{mutex_};
    comms_.push_back(&comm);
  }
  void forget(nccl::Communicator& comm) noexcept {
    const std::lock_guard lock{mutex_};
    std::erase(comms_, &comm);
  }

  /// Aborts communicators, and waits for a limited time.
  /// @return Those that were left behind, as Abort::wait() returns them. The log has them too.
  std::string abort(std::span<nccl::Communicator* const> comms) noexcept;
  /// Aborts all communicators of the mesh.
  std::string abort() noexcept;

  /// Sets what tells the watch why all communicators must be aborted. The thread of the watch calls
  /// the function until the release.
  void set_reason(std::function<std::string()> reason) {
    const std::lock_guard lock{reason_mutex_};
    reason_ = std::move(reason);
  }

  std::string reason_to_abort() override {
    const std::lock_guard lock{reason_mutex_};
    return reason_ ? reason_() : std::string{};
  }
  std::unique_ptr<nccl::Abort> begin_abort(const std::string& why) override {
    const std::lock_guard lock{mutex_};
    return std::make_unique<nccl::Abort>(comms_, why, nccl::Abort::Frees::when_released);
  }
  bool is_in_graphs(const std::string& name) override { return !graphs.alive(name).empty(); }
  void warn(const std::string& text) noexcept override;

  /// Releases the device, so that another mesh of this process may use another device.
  void release() {
    set_reason({});
    watch.stop();
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
  std::mutex mutex_;  // of the communicators
  std::vector<nccl::Communicator*> comms_;
  std::mutex reason_mutex_;
  std::function<std::string()> reason_;
  const std::function<void(const std::string&)> log_;
  std::vector<device::Event> events_;
  bool is_released_ = false;
};

}  // namespace rankmesh
