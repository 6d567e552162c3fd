// SPDX-License-Identifier: BSD-3-Clause
#include "curves.hpp"

#include <utility>

namespace meshinfo {

std::string take_picture(OutputOptions& options) {
  if (!options.path.ends_with(".svg")) return {};
  return std::exchange(options.path, {});
}

void draw(const rankmesh::report::Document& document, const rankmesh::report::CurveColumns& columns,
          const std::string& title, Output& output) {
  output.write(rankmesh::report::curves_svg(document.table, columns, title));
  output.finish();
}

}  // namespace meshinfo
