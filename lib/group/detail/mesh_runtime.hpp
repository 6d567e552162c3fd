// What all coordinators of one mesh share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "open_batch.hpp"
#include "operations_in_flight.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "slow_path_reasons.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Facts about a mesh that do not change after it was opened.
struct MeshFacts {
  Rank rank{};
  std::int32_t local_rank = 0;  ///< Among the mesh's ranks on its node.
  /// Of blocking operations on host memory; nothing: MPI's blocking functions are used.
  std::optional<Deadline::Duration> deadline{};
  std::optional<int> device{};  ///< The CUDA device that this rank drives.
  std::string why_no_device{};  ///< Why there is no device transport; empty where there is one.
  RouteTable routes{};          ///< Of the code, the environment and the file, then the defaults.
};

/// The state that operations of all groups of one mesh share. Coordinators and Works hold it; it
/// knows neither of them, and it outlives the mesh where the program keeps a group.
struct MeshRuntime {
  /// @param device_batch  Null where the mesh has no devices.
  MeshRuntime(MeshFacts mesh_facts, std::shared_ptr<ControlPlane> control_plane,
              std::shared_ptr<DeviceBatch> device_batch)
      : facts{std::move(mesh_facts)},
        control{std::move(control_plane)},
        batch{std::move(device_batch), slow_path} {
    if (facts.deadline) slow_path.add();
  }

  const MeshFacts facts;
  const std::shared_ptr<ControlPlane> control;
  SlowPathReasons slow_path;
  OperationsInFlight in_flight{slow_path};
  OpenBatch batch;
  bool is_closed = false;
  std::atomic_flag busy;  ///< See CallLock.
};

/// Holds the mesh's one place for a caller. A second thread is refused instead of racing.
class CallLock {
 public:
  /// @throws UsageError when another thread holds it.
  explicit CallLock(MeshRuntime& runtime) : runtime_{runtime} {
    if (runtime.busy.test_and_set(std::memory_order_acquire)) [[unlikely]]
      refuse(runtime);
  }
  [[gnu::always_inline]] ~CallLock() { runtime_.busy.clear(std::memory_order_release); }
  CallLock(const CallLock&) = delete;
  CallLock& operator=(const CallLock&) = delete;

 private:
  [[noreturn]] static void refuse(const MeshRuntime& runtime);
  MeshRuntime& runtime_;
};

}  // namespace rankmesh::detail
