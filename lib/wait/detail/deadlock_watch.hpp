// SPDX-License-Identifier: BSD-3-Clause
// Finds ranks of a node that wait for each other in a circle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node_board.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

/// Watches for a circle of waits during one wait of this rank: it waits for rank k, which waits for
/// another rank, and so on back to this rank.
///
/// Each rank publishes the ranks without which its wait cannot end, also on the boards of its other
/// meshes. A rank with other operations in flight publishes none, because its peers may wait for
/// these operations. A circle counts as a deadlock only if every rank of it has again determined
/// for which ranks it waits, and no rank of it has left its wait meanwhile. Therefore a circle that
/// is about to dissolve does not count as a deadlock, however slow its ranks are.
///
/// Among the ranks of a circle that wait in the mesh of the board, the first one reports the circle
/// to the others, so that all of them throw the same text. They throw at the same time: a rank that
/// has thrown may leave its mesh, and this would end the waits of the other ranks with a different
/// error.
class DeadlockWatch {
 public:
  /// @param own  The board of the mesh that waits. It must outlive this object.
  explicit DeadlockWatch(NodeBoard& own) : own_{own} {}
  ~DeadlockWatch();
  DeadlockWatch(const DeadlockWatch&) = delete;
  DeadlockWatch& operator=(const DeadlockWatch&) = delete;

  /// Publishes for which ranks this rank waits, and looks for circles. Call it about ten times a
  /// second.
  /// @param needed  Ranks of the mesh without which the wait cannot end.
  /// @return What to throw; nothing if there is no such circle.
  std::optional<Deadlock> look(const std::vector<Rank>& needed, const RankNames& names);

 private:
  struct Link {
    std::size_t slot;
    std::uint64_t version;
    std::uint64_t checks;
  };
  using Circle = std::vector<Link>;
  [[nodiscard]] static Circle circle_of(const NodeBoard& board);
  [[nodiscard]] static bool is_confirmed(const NodeBoard& board, const Circle& circle);
  [[nodiscard]] static bool is_intact(const NodeBoard& board, const Circle& circle);
  [[nodiscard]] static std::string describe(const NodeBoard& board, const Circle& circle,
                                            const RankNames& names);
  [[nodiscard]] bool is_reporter(const Circle& circle) const;
  void publish(const std::vector<Rank>& needed);

  NodeBoard& own_;
  Circle circle_;  // on the own board, as it was found first
};

}  // namespace rankmesh::detail
