// SPDX-License-Identifier: BSD-3-Clause
// CUDA graphs that contain operations of a communicator.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::device {

/// Returns whether the stream is being captured. Cost: one call of cudaStreamIsCapturing.
/// @throws UsageError if nothing can be added to the stream. This is the case if the capture of the
/// stream is invalidated. It is also the case if the stream is the default stream, and another
/// stream that waits for the default stream is being captured. NCCL does not check this. It treats
/// such a stream as one that is not captured, and the launch fails. The NCCL communicator cannot be
/// used any more.
RANKMESH_API bool is_captured(StreamRef stream);

/// Records which CUDA graphs contain operations of which communicators. A communicator must not be
/// destroyed while a CUDA graph contains its operations.
///
/// The program may capture, clone and instantiate graphs without calling rankmesh. To find out when
/// a graph is destroyed, this class attaches a CUDA user object to each capture
/// (cudaGraphRetainUserObject). CUDA destroys the user object together with the last graph, clone
/// or executable graph that was made from the capture.
class RANKMESH_API CapturedGraphs {
 public:
  CapturedGraphs();
  /// If the stream is being captured, records the capture under `name`. Call note() once for each
  /// operation. If the stream is not being captured, this costs as much as is_captured().
  /// @throws UsageError under the same conditions as is_captured().
  /// @return Whether the stream is being captured.
  bool note(StreamRef stream, const std::string& name);
  /// Returns the names whose captures are still part of a graph, with the number of captures for
  /// each name. CUDA reports the destruction of a graph with a short delay. If there are captures,
  /// this function therefore waits up to half a second for the report that the graphs are
  /// destroyed.
  /// @param only  If `only` is not empty, the result contains no other names.
  [[nodiscard]] std::map<std::string, int> alive(const std::string& only = {}) const;
  /// Returns whether any captures are still part of a graph, as far as CUDA has reported. Takes no
  /// lock.
  [[nodiscard]] bool hold_any() const noexcept {
    return count_->load(std::memory_order_relaxed) != 0;
  }
  /// Returns whether captures of a name are still part of a graph, as far as CUDA has reported.
  [[nodiscard]] bool holds(const std::string& name) const;

 private:
  struct GraphState;
  std::shared_ptr<GraphState> state_;
  const std::atomic<int>* count_;
  std::map<std::string, std::uint64_t> last_capture_;  // the last capture of each name
};

}  // namespace rankmesh::device
