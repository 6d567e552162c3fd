// SPDX-License-Identifier: BSD-3-Clause
// Where the boxes of a drawing are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/machine/machine.hpp"

namespace rankmesh::report::detail {

/// A rectangle of a drawing, in pixels: a box with a title, or a cell.
struct PlacedBox {
  std::size_t level = 0;  ///< the level; the number of levels means a slot
  std::int64_t unit = 0;  ///< the unit of the level, or the slot
  std::string title{};    ///< of a box; a cell has none
  bool is_cell = false;   ///< it contains no other box
  double x = 0, y = 0, width = 0, height = 0;
};

/// The boxes of a machine, nested. The innermost level that is drawn consists of cells.
struct BoxLayout {
  std::size_t cell_level = 0;      ///< the number of levels if the cells are slots
  std::vector<PlacedBox> boxes{};  ///< each box before those inside it
  double width = 0, height = 0;    ///< of the whole drawing
};

/// Places the boxes of a machine. Slots are cells if there are at most `most_cells` of them.
/// Otherwise the innermost level with so few units is folded: its units are the cells.
/// @param width  The width at which boxes continue in the next row.
BoxLayout place_boxes(const Machine& machine, std::int64_t most_cells, double width);

/// Returns the shortest text of at most `most` characters; a longer one is cut.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace rankmesh::report::detail
