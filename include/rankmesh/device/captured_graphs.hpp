// CUDA graphs that hold operations of a communicator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::device {

/// A graph pins the communicators whose operations were captured into it: they must not be
/// destroyed before it. Each capture gets a user object (cudaGraphRetainUserObject), which CUDA
/// destroys with the last graph, clone or executable graph that came of it: so graphs that the
/// program captures by itself are known too.
class RANKMESH_API CapturedGraphs {
 public:
  CapturedGraphs();
  /// To be called with each operation: where the stream is being captured, the capture is
  /// remembered with the name. Costs one cudaStreamIsCapturing.
  void note(StreamRef stream, const std::string& name);
  /// Names with the number of captures whose graphs live. CUDA reports the end of a graph a moment
  /// after it was destroyed: where some seem to live, this waits up to half a second for that.
  /// @param only  looks at this name alone; empty: at all.
  [[nodiscard]] std::map<std::string, int> alive(const std::string& only = {}) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::map<std::string, std::uint64_t> last_capture_;  // per name
};

}  // namespace rankmesh::device
