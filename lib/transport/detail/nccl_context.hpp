// SPDX-License-Identifier: BSD-3-Clause
// The state that the NCCL transports of one mesh share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
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
#include "wait/detail/control_plane.hpp"

namespace rankmesh {

/// The library, the device, the communicators, the open batch and the captured graphs of one mesh.
/// The mesh's device backend and the transports share it; it refers to neither.
struct NcclContext final : nccl::CallWatch::Owner {
  /// @param control_of_mesh  Its log may be used by another thread.
  NcclContext(const nccl::Library& nccl_library, device::Claim device_claim,
              std::vector<int> compute_capabilities_of_ranks,
              std::shared_ptr<detail::ControlPlane> control_of_mesh)
      : library{nccl_library},
        claim{std::move(device_claim)},
        compute_capabilities{std::move(compute_capabilities_of_ranks)},
        control{std::move(control_of_mesh)},
        watch{library, claim.device(), *this},
        batch{std::make_shared<nccl::Batch>(library, claim, watch, control)},
        may_warn_of_order_{!has_implicit_order(library)} {}

  /// Returns an event. Events are kept for later calls, because it takes CUDA longer to create one
  /// than to record it.
  device::Event take_event() {
    if (events_.empty()) {
      std::optional<device::Event> made;
      device::run_on(claim.device(), [&] { made.emplace(); });
      return std::move(*made);
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

  /// Aborts communicators, and waits for a limited time. Reports those that are left behind; see
  /// left_behind().
  /// @return As Abort::wait().
  std::string abort(std::span<nccl::Communicator* const> comms,
                    const std::string& why = {}) noexcept;
  /// Aborts all communicators of the mesh, unless the watch does so already, and waits for a
  /// limited time.
  void abort(const std::string& why = {}) noexcept;
  /// Returns all communicators that were left behind, as Abort::wait() returns them; empty if there
  /// are none.
  [[nodiscard]] std::string left_behind() {
    const std::lock_guard lock{mutex_};
    return left_behind_;
  }

  /// Sets what tells the watch, besides a loss of ranks, why all communicators must be aborted.
  void set_reason(std::function<std::string()> reason) {
    const std::lock_guard lock{reason_mutex_};
    reason_ = std::move(reason);
  }
  /// From now on, there is no reason. The thread of the watch asks no function any more.
  void forget_reasons() {
    const std::lock_guard lock{reason_mutex_};
    reason_ = nullptr;
    may_be_lost_ = false;
  }

  std::string reason_to_abort() override;
  std::unique_ptr<nccl::Abort> begin_abort(const std::string& why) override {
    const std::lock_guard lock{mutex_};
    return std::make_unique<nccl::Abort>(comms_, why, nccl::Abort::Frees::when_released);
  }
  bool is_in_graphs(const std::string& name) override { return graphs.holds(name); }
  void report(const std::string& text) noexcept override;
  void note_left_behind(const std::string& names) noexcept override;

  /// Notes that a group queues work on its own stream. Warns once if the work on another group's
  /// own stream has no order with it, as far as rankmesh knows.
  /// @return A number for note_order().
  std::uint64_t note_own_work(const void* stream, const std::string& group);
  /// Notes that the work with this number has ended, or that other work waits for it.
  void note_order(const void* stream, std::uint64_t number) noexcept {
    std::erase_if(own_work_, [&](const OwnWork& work) {
      return work.stream == stream && work.number == number;
    });
  }

  /// Releases the device, so that another mesh of this process may use another device.
  void release() {
    forget_reasons();
    watch.stop();
    claim = {};
    events_.clear();
    is_released_ = true;
    batch->release();
  }

  /// Whether the mesh is closed, and its device is free for others.
  [[nodiscard]] bool is_released() const { return is_released_; }

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
  const std::shared_ptr<detail::ControlPlane> control;
  nccl::CallWatch watch;  ///< Limits the time of calls that block.
  const std::shared_ptr<nccl::Batch> batch;
  device::CapturedGraphs graphs;

 private:
  // Whether NCCL launches kernels in the order of the calls.
  static bool has_implicit_order(const nccl::Library& library);

  static constexpr std::size_t most_events = 256;
  std::mutex mutex_;  // of the communicators, also of those that were left behind
  std::vector<nccl::Communicator*> comms_;
  std::string left_behind_;
  std::mutex reason_mutex_;
  std::function<std::string()> reason_;
  bool may_be_lost_ = true;  // and nobody has said so yet
  bool may_warn_of_order_;
  std::vector<device::Event> events_;
  struct OwnWork {
    const void* stream;
    std::uint64_t number;  // of the latest work
    std::string group;
  };
  std::vector<OwnWork> own_work_;  // that nothing waits for yet
  std::uint64_t last_own_work_ = 0;
  bool is_released_ = false;
};

}  // namespace rankmesh
