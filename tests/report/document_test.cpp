// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <string>

#include "rankmesh/spec/mesh_spec.hpp"
#include "report/reports.hpp"
#include "report/write.hpp"

using rankmesh::RankSet;
using rankmesh::report::Document;
using rankmesh::report::Format;
using rankmesh::report::Json;
using rankmesh::report::Ranks;
using rankmesh::report::Table;
using rankmesh::report::TableHere;

namespace {

Document example() {
  using enum Table::Align;
  Document document{
      .schema = "rankmesh.example/1",
      .fields = {{"text", "a \"b\"\n"}, {"none", nullptr}, {"yes", true}, {"empty", Json::array()}},
      .table = {.columns = {{.title = "name", .level = 1},
                            {.title = "part", .level = 2},
                            {.title = "n", .align = right},
                            {.title = "ranks", .most = 6},
                            {.title = "note", .forms = Table::Forms::csv_only}}}};
  const RankSet ranks = RankSet::parse("0,5,7,20,31");
  document.table.rows = {{"a", "x", 1, Ranks{ranks}, "p,q"},
                         {"a", "x", 22, Ranks{ranks, 9}, "say \"hi\""},
                         {"a", "y", 3, Ranks{ranks}, nullptr},
                         {"b", "y", 4, Ranks{ranks}, 0.5}};
  document.add_bold("title");
  document.add("\n");
  document.text.emplace_back(TableHere{});
  return document;
}

}  // namespace

TEST_CASE("text: cells that repeat the row above are blank, ranks are shortened") {
  CHECK(to_string(example(), Format::text) ==
        "title\n"
        "  name  part   n  ranks\n"
        "  a     x      1  0,5,7,...\n"
        "              22  0,5,7,...\n"
        "        y      3  0,5,7,...\n"
        "  b     y      4  0,5,7,...\n");
}

TEST_CASE("text: colour marks bold pieces and the title line of tables") {
  const std::string text = to_string(example(), Format::text, {.colour = true});
  CHECK(text.starts_with("\x1b[1mtitle\x1b[0m\n\x1b[1m  name  part   n  ranks\x1b[0m\n  a "));
}

TEST_CASE("text: a table is cut after its rows") {
  Document document = example();
  document.text = {TableHere{1}};
  CHECK(to_string(document, Format::text) ==
        "  name  part  n  ranks\n"
        "  a     x     1  0,5,7,...\n");
}

TEST_CASE("CSV: every cell of every column, quoted if needed") {
  CHECK(to_string(example(), Format::csv) ==
        "name,part,n,ranks,note\n"
        "a,x,1,\"0,5,7,20,31\",\"p,q\"\n"
        "a,x,22,\"0,5,7,20,...\",\"say \"\"hi\"\"\"\n"
        "a,y,3,\"0,5,7,20,31\",\n"
        "b,y,4,\"0,5,7,20,31\",0.5\n");
}

TEST_CASE("JSON: the schema first, then the fields in their order") {
  Document document = example();
  document.fields["list"].push_back({{"ranks", Ranks{RankSet::parse("0-8:2")}}});
  document.fields["list"].push_back(1.5);
  document.fields["text"] = std::string{"\xff"};  // not UTF-8
  CHECK(to_string(document, Format::json) ==
        "{\n"
        "  \"schema\": \"rankmesh.example/1\",\n"
        "  \"text\": \"\xef\xbf\xbd\",\n"
        "  \"none\": null,\n"
        "  \"yes\": true,\n"
        "  \"empty\": [],\n"
        "  \"list\": [\n"
        "    {\n"
        "      \"ranks\": \"0-8:2\"\n"
        "    },\n"
        "    1.5\n"
        "  ]\n"
        "}\n");
}

TEST_CASE("rows become objects of JSON, with the columns that are named") {
  Document document = example();
  document.table.columns.back().forms = Table::Forms::json_only;
  document.fields = {{"rows", document.table.objects({"n", "ranks", "note"}, 2)}};
  CHECK(document.fields.dump() ==
        "{\"rows\":[{\"n\":1,\"ranks\":\"0,5,7,20,31\",\"note\":\"p,q\"},"
        "{\"n\":22,\"ranks\":\"0,5,7,20,...\",\"note\":\"say \\\"hi\\\"\"}]}");
  CHECK(to_string(document, Format::csv).starts_with("name,part,n,ranks\na,x,1,\"0,5,7,20,31\"\n"));
  CHECK(to_string(document, Format::text).find("note") == std::string::npos);
}

TEST_CASE("text: fields that are there, and rows that are left out") {
  Document document = example();
  document.fields = {{"mesh", "tp=2"}, {"machine", "2 slots"}, {"n", 1}};
  document.text.clear();
  document.add_fields({"mesh", "model", "machine"});
  document.add_table(1, document.table.rows.size(), "rows");
  CHECK(to_string(document, Format::text) ==
        "mesh     tp=2\n"
        "machine  2 slots\n"
        "  name  part  n  ranks\n"
        "  a     x     1  0,5,7,...\n"
        "  ... and 3 more rows\n");
}

TEST_CASE("groups are written in pieces, of the same bytes in every form") {
  const auto plan = rankmesh::MeshSpec::parse_string("dp=65536,tp=2").plan();
  const auto listing = rankmesh::report::groups(plan, {{"tp", plan.groups("tp")}});
  for (const auto format : {Format::text, Format::json, Format::csv}) {
    std::string pieces;
    std::size_t longest = 0;
    write(listing, format, [&](std::string_view piece) {
      pieces += piece;
      longest = std::max(longest, piece.size());
    });
    CHECK(longest <= 65536);
    CHECK(pieces == to_string(listing, format));
    CHECK(pieces.find("131070") != std::string::npos);
  }
}
