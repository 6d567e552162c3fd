// SPDX-License-Identifier: BSD-3-Clause
// The parts of a TensorPlacement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/transfer/placement.hpp"
#include "transfer/detail/axis_shares.hpp"

namespace rankmesh {

struct TensorPlacement::Data {
  std::vector<std::int64_t> shape;
  DataType type = DataType::float32;
  std::string mesh;                                      // canonical
  Layout mesh_layout{{}, 0, nullptr};                    // the view, on the ranks 0, 1, ...
  std::optional<RankSet> on;                             // the ranks of the whole mesh
  std::vector<std::pair<std::string, std::int64_t>> at;  // the coordinates that are fixed
  std::vector<AxisPlacement> axes;
  std::vector<std::string> sums;

  // What follows from the fields above.
  Layout layout{{}, 0, nullptr};            // without the fixed dimensions
  std::vector<detail::AxisShares> shares;   // one per axis
  std::vector<std::size_t> sum_dimensions;  // of `layout`
  std::int64_t elements = 1;
  std::string text;

  /// Sets `layout` from the mesh, `on` and `at`.
  void place();
  /// Sets `shares`. Call place() first.
  void divide(const detail::Refuse& refuse);
  /// Sets `text`.
  void write();

  /// Writes the number of the rank's share of each axis. Returns false if the rank is not in the
  /// mesh.
  bool shares_of(Rank rank, std::vector<std::int64_t>& numbers) const;
};

}  // namespace rankmesh
