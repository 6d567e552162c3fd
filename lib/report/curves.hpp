// SPDX-License-Identifier: BSD-3-Clause
// Draws measurements as curves over the size of the message.
#pragma once

#include <string>
#include <vector>

#include "report/document.hpp"

namespace rankmesh::report {

/// The columns of a table that are drawn, by their titles.
struct CurveColumns {
  std::vector<std::string> panel;  ///< rows with equal cells in these columns share a panel
  std::string curve;               ///< rows with equal cells in this column form one curve
  std::string x;                   ///< sizes in bytes; rows without a positive size are left out
  /// A quantity on the vertical axis: the title of its column, and the words beside the axis.
  struct Axis {
    std::string column;  ///< The title of the column in the table.
    std::string title;   ///< The title of the axis in the picture.
  };
  std::vector<Axis> y;  ///< each panel is drawn once for each of these axes
};

/// Returns an SVG picture with one panel for each combination of panel and y column. Both axes are
/// logarithmic. The picture has light and dark colours, and needs no other file.
std::string curves_svg(const Table& table, const CurveColumns& columns, const std::string& title);

}  // namespace rankmesh::report
