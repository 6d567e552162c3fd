// SPDX-License-Identifier: BSD-3-Clause
// The meshes of this process, for operations of one mesh that another mesh has to advance.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh::detail {

struct MeshRuntime;

/// Lists the runtimes of all meshes of this process. Polled operations make progress only inside
/// calls of rankmesh. Therefore a thread that waits in one mesh also advances the polled operations
/// that it has issued in all other meshes. A blocking collective over MPI first completes the
/// polled collectives. The operations of other threads are left alone, because these threads may be
/// using their meshes, and because operations may call functions of the program.
///
/// Thread safety: any thread may call any function.
class RANKMESH_API OpenRuntimes {
 public:
  static OpenRuntimes& instance();

  void add(MeshRuntime& runtime);
  void remove(MeshRuntime& runtime);

  /// Says that a mesh has one more, or one less, polled operation in flight. While a polled
  /// operation is in flight, the calls of all meshes take the checked path.
  void begin_polled();
  void end_polled();

  /// Returns whether this thread has polled operations in flight in any mesh.
  [[nodiscard]] bool has_polled();
  /// Advances the polled operations of this thread in all meshes that are not in a call.
  void advance();
  /// Waits for the polled collectives of this thread in all meshes that are not in a call, each
  /// with the timeout of its group.
  void finish_polled();
  /// Returns the meshes in which this thread has polled operations in flight.
  [[nodiscard]] std::vector<std::shared_ptr<MeshRuntime>> with_polled_of_this_thread();

 private:
  OpenRuntimes();

  std::mutex mutex_;
  std::vector<MeshRuntime*> runtimes_;
  std::int64_t polled_ = 0;  // in all meshes
};

}  // namespace rankmesh::detail
