// SPDX-License-Identifier: BSD-3-Clause
// Finds ranks of a node that wait for each other in a circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node_board.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

/// What the ranks of a deadlock throw, and when.
struct Deadlock {
  std::string text{};
  std::int64_t at = 0;  ///< See NodeBoard::now().
};

/// Watches for a circle of waits during one wait of this rank: it waits for rank k, which waits for
/// another rank, and so on back to this rank.
///
/// Each rank publishes the ranks without which its wait cannot end (PublishedWait::need()), also on
/// the boards of its other meshes. A rank with other operations in flight publishes none, because
/// its peers may wait for these operations. A circle counts as a deadlock only if every rank of it
/// has again determined for which ranks it waits, and no rank of it has left its wait meanwhile.
/// Therefore a circle that is about to dissolve does not count as a deadlock, however slow its
/// ranks are. Nothing else ends calls because of what several ranks do.
///
/// Among the ranks of a circle that wait in the mesh of the board, the first one reports the circle
/// to the others, so that all of them throw the same text. They throw at the same time: a rank that
/// has thrown may leave its mesh, and this would end the waits of the other ranks with a different
/// error.
class DeadlockWatch {
 public:
  /// @param board  Of the mesh that waits. It must outlive this object.
  explicit DeadlockWatch(const NodeBoard& board) : board_{board} {}

  /// Looks for circles. Call it about ten times a second, after PublishedWait::need().
  /// @return What to throw; nothing if there is no such circle.
  std::optional<Deadlock> look(const RankNames& names);

 private:
  /// A rank of a circle, and its needs when the circle was found.
  struct Link {
    std::size_t slot;
    PublishedNeeds::Value found;
  };
  [[nodiscard]] std::vector<Link> find() const;
  [[nodiscard]] bool is_confirmed() const;
  [[nodiscard]] bool is_intact() const;
  [[nodiscard]] bool is_reporter() const;
  [[nodiscard]] Deadlock report(const RankNames& names) const;

  const NodeBoard& board_;
  std::vector<Link> circle_;  // in the order in which the ranks wait for each other
};

}  // namespace rankmesh::detail
