// SPDX-License-Identifier: BSD-3-Clause
// CUDA graphs that contain operations of a communicator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::device {

/// Knows which CUDA graphs contain operations of which communicators. A communicator must not be
/// destroyed before such a graph.
///
/// The program may capture graphs, clone and instantiate them without rankmesh. Each capture
/// therefore gets a CUDA user object (cudaGraphRetainUserObject). CUDA destroys this object
/// together with the last graph, clone or executable graph that was made from the capture.
class RANKMESH_API CapturedGraphs {
 public:
  CapturedGraphs();
  /// If the stream is being captured, remembers the capture with the name. Call it with each
  /// operation. Costs one call of cudaStreamIsCapturing.
  void note(StreamRef stream, const std::string& name);
  /// Returns the names that have captures in existing graphs, with the number of captures for each
  /// name. CUDA reports the destruction of a graph a moment after it has happened. So if there are
  /// captures, this function waits for such a report for up to half a second.
  /// @param only  A name. If it is not empty, the result leaves out all other names.
  [[nodiscard]] std::map<std::string, int> alive(const std::string& only = {}) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::map<std::string, std::uint64_t> last_capture_;  // per name
};

}  // namespace rankmesh::device
