// SPDX-License-Identifier: BSD-3-Clause
// The state that all coordinators of one mesh share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "call_ranges.hpp"
#include "device_calls.hpp"
#include "device_watch.hpp"
#include "open_batch.hpp"
#include "open_runtimes.hpp"
#include "operations_in_flight.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "resolved_routes.hpp"
#include "slow_path_reasons.hpp"
#include "transport/detail/node_memory.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Facts about a mesh that do not change after it was opened.
struct MeshFacts {
  Rank rank{};
  std::int32_t local_rank = 0;  ///< Among the mesh's ranks on its node.
  /// For blocking operations on host memory; if empty, they call MPI's blocking functions.
  std::optional<Deadline::Duration> deadline{};
  std::optional<int> device{};         ///< The CUDA device that this rank uses.
  std::string why_no_device{};         ///< Why there is no device transport; empty if there is one.
  std::optional<CallRanges> ranges{};  ///< To show calls; empty without NVTX.
  /// Reads the memory of the other ranks of the node; null if the system refuses this.
  std::shared_ptr<NodeMemory> node_memory{};
  RouteTable routes{};  ///< From the options, the environment, the file and the defaults.
};

/// The state that operations of all groups of one mesh share. Coordinators and Works hold it; it
/// refers to neither of them, and it outlives the mesh if the program keeps a group.
struct MeshRuntime : std::enable_shared_from_this<MeshRuntime> {
  /// @param device_batch  Null if the mesh has no devices.
  MeshRuntime(MeshFacts mesh_facts, std::shared_ptr<ControlPlane> control_plane,
              std::shared_ptr<DeviceBatch> device_batch)
      : facts{std::move(mesh_facts)},
        control{std::move(control_plane)},
        batch{std::move(device_batch), slow_path} {
    if (facts.deadline) slow_path.add();
    if (facts.ranges) slow_path.add();
    OpenRuntimes::instance().add(*this);
  }
  ~MeshRuntime() { OpenRuntimes::instance().remove(*this); }
  MeshRuntime(const MeshRuntime&) = delete;
  MeshRuntime& operator=(const MeshRuntime&) = delete;
  /// Returns how calls are shown, or null.
  [[nodiscard]] const CallRanges* ranges() const { return facts.ranges ? &*facts.ranges : nullptr; }

  const MeshFacts facts;
  ResolvedRoutes routes{facts.routes};
  const std::shared_ptr<ControlPlane> control;
  SlowPathReasons slow_path;
  OperationsInFlight in_flight;
  OpenBatch batch;
  DeviceCalls device_calls;
  std::unique_ptr<DeviceWatch> device_watch;  ///< Null without the option `device_deadline`.
  bool is_closed = false;
  std::string last_failure;  ///< The last error of an operation, for peers if this rank leaves.
  std::atomic_flag busy;     ///< See CallLock.
  std::atomic<std::int32_t> guests{0};  ///< See GuestLock.
  /// The thread that closes the mesh or a group; see AdvancedByWaits.
  std::atomic<std::thread::id> closing_thread{};
};

/// Marks the mesh as in use by this thread, so a call from a second thread throws instead
/// of causing a data race.
class CallLock {
 public:
  /// @throws UsageError if another thread uses the mesh.
  explicit CallLock(MeshRuntime& runtime) : runtime_{runtime} {
    if (runtime.busy.test_and_set(std::memory_order_acquire)) [[unlikely]]
      wait_for_guests(runtime);
  }
  [[gnu::always_inline]] ~CallLock() { runtime_.busy.clear(std::memory_order_release); }
  CallLock(const CallLock&) = delete;
  CallLock& operator=(const CallLock&) = delete;

 private:
  static void wait_for_guests(MeshRuntime& runtime);
  MeshRuntime& runtime_;
};

/// Lets every wait of this thread advance the operations of the mesh, although the mesh is in a
/// call. While a mesh or a group is being closed, receives may be in flight whose senders wait for
/// this rank before they call close().
class AdvancedByWaits {
 public:
  explicit AdvancedByWaits(MeshRuntime& runtime) : runtime_{runtime} {
    runtime_.in_flight.continue_in_this_thread();
    runtime_.closing_thread = std::this_thread::get_id();
  }
  ~AdvancedByWaits() { runtime_.closing_thread = std::thread::id{}; }
  AdvancedByWaits(const AdvancedByWaits&) = delete;
  AdvancedByWaits& operator=(const AdvancedByWaits&) = delete;

 private:
  MeshRuntime& runtime_;
};

/// Marks the mesh as in use by a thread that only advances operations, while the thread waits in
/// another mesh. A call of another thread waits for the guest instead of throwing, because the
/// program uses the mesh correctly.
class GuestLock {
 public:
  explicit GuestLock(MeshRuntime& runtime) : runtime_{runtime} {
    ++runtime_.guests;  // before the mesh is busy, so that a call never mistakes a guest for
                        // another call
    is_held_ = !runtime_.busy.test_and_set(std::memory_order_acquire);
    if (!is_held_) --runtime_.guests;
  }
  ~GuestLock() {
    if (!is_held_) return;
    runtime_.busy.clear(std::memory_order_release);
    --runtime_.guests;
  }
  GuestLock(const GuestLock&) = delete;
  GuestLock& operator=(const GuestLock&) = delete;
  /// Returns false if the mesh is in a call.
  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  MeshRuntime& runtime_;
  bool is_held_ = false;
};

}  // namespace rankmesh::detail
