// SPDX-License-Identifier: BSD-3-Clause
// -o curve.svg of bench and tune.
#pragma once

#include <string>

#include "output.hpp"
#include "report/curves.hpp"

namespace meshinfo {

// If the path ends in .svg, returns it and lets the report go to standard output instead. Otherwise
// returns an empty path.
std::string take_picture(OutputOptions& options);

// Writes the curves of the document's table.
void draw(const rankmesh::report::Document& document, const rankmesh::report::CurveColumns& columns,
          const std::string& title, Output& output);

}  // namespace meshinfo
