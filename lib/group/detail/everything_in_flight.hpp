// SPDX-License-Identifier: BSD-3-Clause
// The operations in flight of all meshes of this process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rankmesh/export.hpp"
#include "wait/detail/progress.hpp"

namespace rankmesh::detail {

struct MeshRuntime;

/// Lists the meshes of this process, each with its OperationsInFlight, and is what
/// advance_everything() calls. The operations of other threads are left alone, because these
/// threads may be using their meshes, and because operations may call functions of the program.
///
/// Thread safety: any thread may call any function.
class RANKMESH_API EverythingInFlight {
 public:
  static EverythingInFlight& instance();

  void add(MeshRuntime& runtime);
  void remove(MeshRuntime& runtime);

  /// Counts the operations that waits advance: those on host memory for which no wait or test() is
  /// on its way. As long as there is none, a poll costs one load.
  void count(std::int64_t change) { unattended_.fetch_add(change, std::memory_order_relaxed); }
  /// Says that a mesh has one more, or one less, polled operation in flight (see
  /// Pending::is_polled()). While one is in flight, the calls of all meshes take the checked path,
  /// so that none of them blocks inside MPI before the operation is complete.
  void begin_polled();
  void end_polled();

  /// See detail::leave_fast_path().
  void leave_fast_path();

  /// See advance_everything(). It enters each mesh of this thread that is free or at a poll, so no
  /// function of the program that an operation calls is entered twice.
  void advance(MeshLock* waiting);
  /// Returns the meshes in which this thread has polled operations in flight.
  [[nodiscard]] std::vector<std::shared_ptr<MeshRuntime>> with_polled_of_this_thread();

 private:
  EverythingInFlight();
  std::shared_ptr<MeshRuntime> next_of_this_thread(std::size_t& place);

  std::mutex mutex_;
  std::vector<MeshRuntime*> runtimes_;
  std::int64_t polled_ = 0;  // in all meshes
  std::atomic<std::int64_t> unattended_{0};
};

}  // namespace rankmesh::detail
