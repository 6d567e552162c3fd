// SPDX-License-Identifier: BSD-3-Clause
// The picture of curves.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace rankmesh::report::detail {

struct Curve {
  std::string title{};
  std::vector<std::pair<double, double>> points{};  ///< positive numbers
};

struct Panel {
  std::string title{};
  std::vector<Curve> curves{};
};

/// Returns the panels as an SVG picture.
/// @param in_row  how many panels are beside each other, at least 1.
std::string draw_panels(const std::vector<Panel>& panels, std::size_t in_row,
                        const std::string& title);

}  // namespace rankmesh::report::detail
