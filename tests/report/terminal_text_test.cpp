// SPDX-License-Identifier: BSD-3-Clause
// Text that is fitted to a terminal.
#include <doctest/doctest.h>

#include <string>

#include "rankmesh/spec/mesh_spec.hpp"
#include "report/reports.hpp"
#include "report/write.hpp"

using rankmesh::RankSet;
using rankmesh::report::Document;
using rankmesh::report::Format;
using rankmesh::report::Ranks;
using rankmesh::report::Table;
using rankmesh::report::TableHere;

namespace {

std::string fitted(const Document& document, std::size_t width, bool colour = false) {
  return to_string(document, Format::text, {colour, width});
}

Document prose(const std::string& text) {
  Document document;
  document.add(text);
  return document;
}

}  // namespace

TEST_CASE("a line is broken at blanks, and a long word stays whole") {
  CHECK(fitted(prose("one two three\n"), 13) == "one two three\n");
  CHECK(fitted(prose("one two three\n"), 12) == "one two\n  three\n");
  CHECK(fitted(prose("  one two three\n"), 9) == "  one two\n    three\n");
  CHECK(fitted(prose("a-very-long-word b\n"), 8) == "a-very-long-word\n  b\n");
  CHECK(fitted(prose("key  some words here\n"), 14) == "key  some\n     words\n     here\n");
  CHECK(fitted(prose("\n\n    \nx"), 2) == "\n\n    \nx");
}

TEST_CASE("bold pieces stay bold where they are continued") {
  Document document;
  document.add("a ");
  document.add_bold("bold words");
  document.add(" b\n");
  CHECK(fitted(document, 80, true) == "a \x1b[1mbold words\x1b[0m b\n");
  CHECK(fitted(document, 8, true) == "a \x1b[1mbold\x1b[0m\n  \x1b[1mwords\x1b[0m\n  b\n");
}

TEST_CASE("a table takes from its widest column, and shortens ranks last of all to 20 characters") {
  using enum Table::Align;
  Document document{.table = {.columns = {{"what differs"}, {"n", right}, {"ranks"}}}};
  document.table.rows = {
      {"other groups", 1, Ranks{RankSet::parse("0,5,7,20,31,40,41,50,77,99,1000")}},
      {"same", 22, Ranks{RankSet::parse("0-3")}}};
  document.text = {TableHere{}};
  CHECK(fitted(document, 44) ==
        "  what differs   n  ranks\n"
        "  other groups   1  0,5,7,20,31,40-41,50,...\n"
        "  same          22  0-3\n");
  CHECK(fitted(document, 38) ==
        "  what      n  ranks\n"
        "  differs\n"
        "  other     1  0,5,7,20,31,...\n"
        "  groups\n"
        "  same     22  0-3\n");
}

TEST_CASE("a table that is still too wide continues below, beside its first column") {
  Document document{
      .table = {.columns = {{"name"}, {"aaaaaaaaaa"}, {"bbbbbbbbbb"}, {"cccccccccc"}}}};
  document.table.rows = {{"x", 1, 2, 3}};
  document.text = {TableHere{}};
  CHECK(fitted(document, 32) ==
        "  name  aaaaaaaaaa  bbbbbbbbbb\n"
        "  x     1           2\n"
        "\n"
        "  name  cccccccccc\n"
        "  x     3\n");
}

TEST_CASE("show divides the grid, and stays below 50 lines") {
  const auto plan = rankmesh::MeshSpec::parse("dp=16,tp=16").plan();
  for (const std::size_t width : {40U, 60U, 80U, 100U, 120U}) {
    CAPTURE(width);
    const std::string text = fitted(rankmesh::report::show(plan, nullptr, width), width);
    CHECK(std::count(text.begin(), text.end(), '\n') < 50);
  }
  const auto small = rankmesh::MeshSpec::parse("dp=2,tp=6").plan();
  const std::string text = fitted(rankmesh::report::show(small, nullptr, 23), 23);
  CHECK(text.find("        tp 0   1   2\n"
                  "  dp 0     0   1   2\n"
                  "  dp 1     6   7   8\n"
                  "\n"
                  "        tp 3   4   5\n"
                  "  dp 0     3   4   5\n"
                  "  dp 1     9  10  11\n") != std::string::npos);
}
