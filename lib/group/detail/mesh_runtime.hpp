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
#include "everything_in_flight.hpp"
#include "open_batch.hpp"
#include "operations_in_flight.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/user_function.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "resolved_routes.hpp"
#include "slow_path_reasons.hpp"
#include "transport/detail/node_memory.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// The state that operations of all groups of one mesh share. Coordinators and Works hold it; it
/// refers to neither of them, and it outlives the mesh if the program keeps a group.
struct MeshRuntime : std::enable_shared_from_this<MeshRuntime> {
  /// @param rules         From the options, the environment, the file and the defaults.
  /// @param device_batch  Null if the mesh has no devices.
  MeshRuntime(std::shared_ptr<ControlPlane> control_plane, RouteTable rules,
              std::shared_ptr<DeviceBatch> device_batch)
      : control{std::move(control_plane)},
        route_rules{std::move(rules)},
        batch{std::move(device_batch), slow_path} {
    if (control != nullptr) control->lock = &lock;
    EverythingInFlight::instance().add(*this);
  }
  ~MeshRuntime() {
    EverythingInFlight::instance().remove(*this);
    if (control != nullptr) control->lock = nullptr;
  }
  MeshRuntime(const MeshRuntime&) = delete;
  MeshRuntime& operator=(const MeshRuntime&) = delete;

  /// Makes calls on host memory that block poll until this deadline instead of calling MPI's
  /// blocking functions.
  void limit_calls(Deadline::Duration limit) {
    deadline = limit;
    slow_path.add();
  }
  /// Shows the calls as ranges of NVTX.
  void show_calls(CallRanges of_calls) {
    ranges_ = std::move(of_calls);
    slow_path.add();
  }
  /// Returns how calls are shown, or null.
  [[nodiscard]] const CallRanges* ranges() const { return ranges_ ? &*ranges_ : nullptr; }

  /// See ControlPlane.
  void throw_if_lost() const {
    if (control != nullptr) control->throw_if_lost();
  }
  void throw_if_result_of_loss(const Error& error) const {
    if (control != nullptr) control->throw_if_result_of_loss(error);
  }

  /// How long a rank waits for an operation on host memory, and the option that says so.
  struct WaitLimit {
    Deadline deadline;
    TimeLimit option;
  };
  /// @param timeout  That of the group, for meshes without a deadline.
  [[nodiscard]] WaitLimit wait_limit(Deadline::Duration timeout) const {
    if (deadline) return {Deadline{*deadline}, TimeLimit::deadline};
    return {Deadline{timeout}, TimeLimit::timeout};
  }

  const std::shared_ptr<ControlPlane> control;
  const RouteTable route_rules;
  /// What open_mesh() sets before there are groups, and nobody changes.
  Rank rank{};
  std::int32_t local_rank = 0;  ///< Among the mesh's ranks on its node.
  std::optional<Deadline::Duration> deadline{};
  std::optional<int> device{};  ///< The CUDA device that this rank uses.
  std::string why_no_device{};  ///< Why there is no device transport; empty if there is one.
  /// Reads the memory of the other ranks of the node; null if the system refuses this.
  std::shared_ptr<NodeMemory> node_memory{};

  ResolvedRoutes routes{route_rules};
  SlowPathReasons slow_path;
  OperationsInFlight in_flight;
  OpenBatch batch;
  DeviceCalls device_calls;
  std::unique_ptr<DeviceWatch> device_watch;  ///< Null without the option `device_deadline`.
  UserFunction caller = UserFunction::none;   ///< See CalledBy.
  bool is_closed = false;
  std::string last_failure;  ///< The last error of an operation, for peers if this rank leaves.
  MeshLock lock;             ///< See CallLock and GuestLock.

 private:
  std::optional<CallRanges> ranges_{};
};

/// Runs a part of a call. A failure may be the result of a loss of ranks, which is thrown instead.
template <class Action>
auto finding_losses(const MeshRuntime& runtime, Action&& action) {
  runtime.throw_if_lost();
  try {
    return action();
  } catch (const LostRanks&) {
    throw;
  } catch (const Error& error) {
    runtime.throw_if_result_of_loss(error);
    throw;
  }
}

/// Marks the mesh as in use by this thread, so a call from a second thread throws instead
/// of causing a data race.
class CallLock {
 public:
  /// @throws UsageError if another thread uses the mesh.
  explicit CallLock(MeshRuntime& runtime) : runtime_{runtime} {
    if (runtime.lock.busy.test_and_set(std::memory_order_acquire)) [[unlikely]]
      was_at_poll_ = enter_slowly(runtime);
  }
  [[gnu::always_inline]] ~CallLock() {
    if (was_at_poll_) [[unlikely]]
      runtime_.lock.return_to_poll();
    else
      runtime_.lock.busy.clear(std::memory_order_release);
  }
  CallLock(const CallLock&) = delete;
  CallLock& operator=(const CallLock&) = delete;

 private:
  // Returns whether the mesh was at a poll of this thread.
  static bool enter_slowly(MeshRuntime& runtime);
  MeshRuntime& runtime_;
  bool was_at_poll_ = false;
};

/// Marks the mesh as in use by a thread that only advances operations. A call of another thread
/// waits for the guest instead of throwing, because the program uses the mesh correctly.
class GuestLock {
 public:
  explicit GuestLock(MeshRuntime& runtime) : lock_{runtime.lock} {
    ++lock_.guests;  // before the mesh is busy, so that a call never mistakes a guest for another
                     // call
    ++lock_.visits;
    was_free_ = !lock_.busy.test_and_set(std::memory_order_acq_rel);  // after `visits`
    was_at_poll_ = !was_free_ && lock_.enter_at_poll();
    if (is_held())
      before_ = lock_.guest.exchange(std::this_thread::get_id());
    else
      --lock_.guests;
  }
  ~GuestLock() {
    if (!is_held()) return;
    lock_.guest.store(before_);
    if (was_at_poll_)
      lock_.return_to_poll();
    else
      lock_.busy.clear(std::memory_order_release);
    --lock_.guests;
  }
  GuestLock(const GuestLock&) = delete;
  GuestLock& operator=(const GuestLock&) = delete;
  /// Returns false if the mesh is in a call.
  [[nodiscard]] bool is_held() const { return was_free_ || was_at_poll_; }

 private:
  MeshLock& lock_;
  bool was_free_, was_at_poll_;
  std::thread::id before_{};  // this thread, if it is a guest of the mesh already, and waits there
};

}  // namespace rankmesh::detail
