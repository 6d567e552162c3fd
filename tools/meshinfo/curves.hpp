// SPDX-License-Identifier: BSD-3-Clause
// -o curve.svg of bench and tune.
#pragma once

#include <string>
#include <utility>

#include "output.hpp"
#include "rankmesh/report/curves.hpp"

namespace meshinfo {

// Returns the path of the picture, and where the report goes. Without a path that ends in .svg, the
// first one is empty.
std::pair<std::string, OutputOptions> outputs_of(const OutputOptions& options);

// Writes the curves of the document's table.
void draw(const rankmesh::report::Document& document, const rankmesh::report::CurveColumns& columns,
          const std::string& title, Output& output);

}  // namespace meshinfo
