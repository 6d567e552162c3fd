// SPDX-License-Identifier: BSD-3-Clause
// Assignments that follow the dimensions of a mesh: all orders of the dimensions, and all foldings
// of the dimensions over the levels of a machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/place/traffic.hpp"

namespace rankmesh::detail {

/// The dimensions of the first view of a mesh, the coordinates of all ranks, and the slots in the
/// order of the machine's tree.
class MeshGrid {
 public:
  using Take = std::function<void(std::string how, std::vector<std::int64_t> slots)>;

  MeshGrid(const MeshPlan& plan, const Machine& machine);

  /// Whether the first view has all ranks. Otherwise there are no candidates.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

  /// Calls `take(how, slots)` for each order of the dimensions, `most` times at most.
  void each_order(std::int64_t most, const Take& take) const;

  /// Calls `take(how, slots)` for the best foldings, `most` times at most. Foldings are compared by
  /// the traffic of families along the dimensions of the view. There are foldings only if all units
  /// of each level have the same size.
  void each_folding(const MeshPlan& plan, std::span<const FamilyTraffic> traffic, std::size_t most,
                    const Take& take) const;

 private:
  struct Dimension {
    std::string name;
    std::int64_t size;
  };
  /// factors[level][dimension]
  using Folding = std::vector<std::vector<std::int64_t>>;

  void collect(std::size_t level, std::size_t dimension, std::int64_t left,
               std::vector<std::int64_t>& rest, Folding& folding,
               std::vector<Folding>& found) const;
  [[nodiscard]] std::vector<std::int64_t> score(const Folding& folding, const MeshPlan& plan,
                                                std::span<const FamilyTraffic> traffic) const;
  [[nodiscard]] std::vector<std::int64_t> slots_of(const Folding& folding) const;
  [[nodiscard]] std::string text_of(const Folding& folding) const;

  bool is_whole_ = false;
  std::size_t node_level_ = 0;
  std::vector<Dimension> dimensions_;
  std::vector<std::vector<std::int64_t>> coordinates_;  // [dimension][rank]
  std::vector<std::int64_t> tree_;                      // the slots in the order of the tree
  std::vector<std::int64_t> radices_;  // the units of each level in a unit of the level before it
};

}  // namespace rankmesh::detail
