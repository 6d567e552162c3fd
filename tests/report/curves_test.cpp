// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <string>

#include "report/curves.hpp"
#include "support/checks.hpp"

using rankmesh::report::Cell;
using rankmesh::report::Table;

namespace {

std::size_t parts_in(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

std::string drawn(const std::vector<std::vector<Cell>>& rows) {
  const Table table{.columns = {{"name"}, {"transport"}, {"size"}, {"time us"}, {"busbw"}},
                    .rows = rows};
  return rankmesh::report::curves_svg(
      table,
      {.panel = {"name"},
       .curve = "transport",
       .x = "size",
       .y = {{"time us", "time in us"}, {"busbw", "bus bandwidth in GB/s"}}},
      "tp=4 & <dp>");
}

}  // namespace

TEST_CASE("curves: a panel per name and quantity, a curve per transport, a dot per row") {
  const std::string svg = drawn({{"tp", "mpi", 8, 2.5, 0.1},
                                 {"tp", "mpi", 1024, 20.0, 1.0},
                                 {"tp", "shm", 8, 1.25, 0.2},
                                 {"dp", "mpi", 8, 3, 0.5}});
  CHECK(parts_in(svg, "<g ") == 4);
  CHECK(parts_in(svg, "class=\"frame\"") == 4);
  CHECK(parts_in(svg, "<circle ") == 8);
  CHECK_CONTAINS(svg, "tp: time in us");
  CHECK_CONTAINS(svg, "dp: bus bandwidth in GB/s");
  CHECK_CONTAINS(svg, "shm: 8 bytes, 1.25");
  CHECK_CONTAINS(svg, "<title>tp=4 &amp; &lt;dp&gt;</title>");
  CHECK_CONTAINS(svg, ">1K<");
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("curves: what a logarithmic axis cannot show is left out") {
  const std::string svg = drawn({{"tp", "mpi", 0, 2.5, 0.0}, {"tp", "shm", 16, 0.0, 0.0}});
  CHECK(parts_in(svg, "<g ") == 0);
  CHECK_LACKS(svg, "nan");
  CHECK_LACKS(drawn({{"tp", "mpi", 8, 1.0, 1.0}}), "nan");
  CHECK_LACKS(drawn({{"tp", "mpi", 8, 1.0, 1.0}}), "inf");
}
