// SPDX-License-Identifier: BSD-3-Clause
// The plan for all tensors that move between the same two places.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/machine/machine.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "transfer/detail/axis_overlap.hpp"
#include "transfer/detail/cells.hpp"

namespace rankmesh::detail {

/// Some of the elements that a cell before the transfer and a cell after it have in common. They
/// are numbered in row-major order of their indices.
struct Shipment {
  Rank sender = 0, receiver = 0;  ///< equal if the rank copies its own elements
  std::size_t target = 0;         ///< an index into CellPlan::targets
  std::int64_t begin = 0, end = 0;
  TransferStep step = TransferStep::first;
  bool is_added = false;
};

/// A cell after the transfer that needs elements of a cell before it.
struct CellTarget {
  Classes cell;
  std::int64_t count = 0;  ///< the number of common elements
};

/// Returns the cell of these classes, one per axis, and the number of common elements.
[[nodiscard]] CellTarget common_cell(const std::vector<CommonIndices>& axes);

/// Needs for which the same holders can be the senders.
struct SenderChoice {
  std::size_t begin = 0, end = 0;    ///< of CellPlan::needs
  std::vector<std::size_t> senders;  ///< indices into CellPlan::holders
  std::int64_t elements = 0;
};

/// How the elements of one cell, or one partial sum of them, move.
struct CellPlan {
  Classes source;
  std::int64_t sum = 0;
  std::vector<Rank> holders;               ///< ascending
  std::vector<std::int64_t> holder_nodes;  ///< ascending; empty without a machine
  std::vector<CellTarget> targets;         ///< ascending
  std::vector<Shipment> settled;           ///< copies, and forwarded elements
  std::vector<Shipment> needs;             ///< their senders are not chosen yet
  std::vector<SenderChoice> choices;       ///< they divide `needs`
};

/// Plans one pair of places. The arguments must exist as long as the plan.
class PairPlan {
 public:
  /// @throws UsageError if the places do not fit, LostElements if elements are lost.
  PairPlan(const TensorTransfer& tensor, const Machine* machine, const TransferOptions& options);

  /// Returns the messages of a rank.
  [[nodiscard]] TensorTransferOfRank of(Rank rank) const;
  /// Calls `take(cell)` for every cell and every partial sum.
  template <class Take>
  void for_each_cell(Take&& take) const {
    for_each_cell_of(from_, [&](const Classes& source) {
      const auto targets = targets_of(source);
      for (std::int64_t sum = 0; sum < sources_.sum_count(); ++sum)
        take(plan(source, sum, targets));
    });
  }
  /// Returns the cells after the transfer that need elements of a cell before it.
  [[nodiscard]] std::vector<CellTarget> targets_of(const Classes& source) const;
  /// Returns the plan of a cell for some of its targets.
  [[nodiscard]] CellPlan plan(const Classes& source, std::int64_t sum,
                              std::vector<CellTarget> targets) const;
  /// Returns all shipments of a cell.
  [[nodiscard]] std::vector<Shipment> shipments(const CellPlan& cell) const;

  [[nodiscard]] const TensorPlacement::Data& from() const { return from_; }
  [[nodiscard]] const TensorPlacement::Data& to() const { return to_; }
  [[nodiscard]] const CellRanks& sources() const { return sources_; }
  [[nodiscard]] const CellRanks& receivers() const { return receivers_; }
  /// Returns the ranks that have a cell or a copy of it, in ascending order, without the lost ones.
  [[nodiscard]] std::vector<Rank> holders(const Classes& cell, std::int64_t sum) const;
  /// The elements of a rank in one place, and the number of elements before them in its source.
  struct SourcePart {
    const TensorPlacement::Data& place;
    std::int64_t offset;
  };
  /// Returns where a holder has a cell.
  [[nodiscard]] SourcePart part_with(const Classes& cell, Rank holder) const;
  /// Returns the indices of an axis that two classes have in common, or null if there are none.
  [[nodiscard]] const CommonIndices* find_common(std::size_t axis, std::int64_t source,
                                                 std::int64_t target) const;
  /// Returns their number.
  [[nodiscard]] std::int64_t common(std::size_t axis, std::int64_t source,
                                    std::int64_t target) const;
  /// Returns the node of a rank. Without a machine, each rank is a node of its own.
  [[nodiscard]] std::int64_t node(Rank rank) const {
    return machine_ != nullptr ? machine_->unit(machine_->node_level(), rank.value())
                               : rank.value();
  }

 private:
  using CellKey = std::pair<Classes, std::int64_t>;  // the classes, and which partial sum

  /// The targets of a cell that concern a rank. All of them if the rank has the cell.
  struct CellOfRank {
    std::vector<CellTarget> targets;
    bool has_all = false;
  };

  /// Whether the loads of each cell are levelled separately, among all holders of the cell.
  [[nodiscard]] bool is_plain() const {
    return machine_ == nullptr && levelled_.empty() && from_.sums.empty();
  }
  /// Returns what a rank receives from a cell that it does not have, in a plain plan. The plan of
  /// the cell contains only the targets of this rank.
  /// @param ahead  for each target, the number of lower ranks that have it.
  [[nodiscard]] std::vector<Shipment> stripes(const CellPlan& cell, Rank receiver,
                                              std::span<const std::int64_t> ahead) const;
  void require_holders(const TensorTransfer& tensor) const;
  void add_needs(CellPlan& cell, std::size_t target) const;
  void add_needs_of_sum(CellPlan& cell, std::size_t target) const;
  void add_choices(CellPlan& cell) const;
  void level();
  [[nodiscard]] std::map<CellKey, CellOfRank> cells_of(Rank rank) const;

  const TensorPlacement::Data& from_;
  const TensorPlacement::Data& to_;
  const TensorPlacement::Data* copy_;  // null if there are no copies
  const std::vector<Rank>& lost_;      // ascending
  const Machine* machine_;
  bool fan_out_;
  CellRanks sources_, receivers_;
  std::optional<CellRanks> copies_;
  std::vector<AxisOverlap> overlaps_;
  // The elements for each sender of each choice. Empty if no rank has several cells. In this case
  // each cell is levelled separately.
  std::map<CellKey, std::vector<std::vector<std::int64_t>>> levelled_;
};

}  // namespace rankmesh::detail
