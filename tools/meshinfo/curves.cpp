// SPDX-License-Identifier: BSD-3-Clause
#include "curves.hpp"

namespace meshinfo {

std::pair<std::string, OutputOptions> outputs_of(const OutputOptions& options) {
  if (!options.path.ends_with(".svg")) return {"", options};
  OutputOptions report = options;
  report.path.clear();
  return {options.path, report};
}

void draw(const rankmesh::report::Document& document, const rankmesh::report::CurveColumns& columns,
          const std::string& title, Output& output) {
  output.write(rankmesh::report::curves_svg(document.table, columns, title));
  output.finish();
}

}  // namespace meshinfo
