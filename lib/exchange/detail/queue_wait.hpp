// SPDX-License-Identifier: BSD-3-Clause
// One wait in a control queue, as the other ranks of the node see it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "wait/detail/control_plane.hpp"
#include "wait/detail/published_wait.hpp"

namespace rankmesh::exchange::detail {

/// Publishes the wait on the board of the node, and ends it if a rank that it needs has failed on
/// this node, or has left the mesh by an exception on another node. Such waits are not reported as
/// stalls: a reader may have nothing to do for long.
class QueueWait {
 public:
  /// @param awaited  Returns the ranks of the mesh without which the wait cannot end.
  QueueWait(rankmesh::detail::ControlPlane& control, std::function<std::string()> activity,
            std::function<std::vector<Rank>()> awaited);
  /// Call it regularly while the wait lasts.
  /// @throws PeerError if an awaited rank has failed or has left.
  void look();

 private:
  [[nodiscard]] std::optional<Rank> failed() const;
  void listen();
  [[noreturn]] void fail(Rank rank) const;

  rankmesh::detail::ControlPlane& control_;
  std::function<std::string()> activity_;
  std::function<std::vector<Rank>()> awaited_;
  std::optional<rankmesh::detail::PublishedWait> published_;
  std::int64_t next_check_ = 0;   // 0 before the first look
  std::optional<Rank> failed_;    // at the last check
  std::exception_ptr departure_;  // of a rank that has left, from the last check
};

}  // namespace rankmesh::exchange::detail
