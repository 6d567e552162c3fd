// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "record/synthetic_job.hpp"
#include "report/timeline.hpp"
#include "support/checks.hpp"

using namespace rankmesh;
using namespace rankmesh::test;

namespace {

std::string picture_of(const std::vector<Record>& records,
                       const std::vector<std::string>& diagnosis = {}) {
  std::string text;
  report::write_timeline_svg([&](std::string_view piece) { text += piece; }, records, diagnosis);
  return text;
}

std::size_t parts_in(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a timeline has a row for each rank, and says what each call is") {
  SyntheticJob job{2, 2};
  job.add(0, descriptor_of(Operation::all_reduce, 4), 5'000'000, 5'090'000);
  job.add(1, descriptor_of(Operation::all_reduce, 4), 5'050'000, 5'090'000);
  job.mark(0, 5'095'000, "step 3");
  job.add(1, descriptor_of(Operation::recv, 4, 0), 5'100'000, 5'190'000, State::failed);
  const std::string svg = picture_of(job.records);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(parts_in(svg, "<g role=\"group\" aria-label=\"rank ") == 2);
  CHECK(parts_in(svg, "<g role=\"img\">") == 3);
  CHECK_CONTAINS(svg, "<title>dp.all_reduce(4 x float32), call 1, begins at 0.0 us, takes 90.0 us");
  CHECK_CONTAINS(svg, ", failed, begins at 100.0 us");
  CHECK_CONTAINS(svg, "<title>step 3</title>");
  CHECK(parts_in(svg, "<g opacity=") == 1);  // rank 0 waits for rank 1
  CHECK(parts_in(svg, " o\" x=") == 1);      // what has failed stands out
  CHECK(parts_in(svg, "http") == 1);         // the name of the format, and no address
}

TEST_CASE("a timeline shows the calls before a hang, however long the hang has lasted") {
  SyntheticJob job{2, 2};
  for (Time t = 0; t < 60; ++t)
    for (const std::size_t rank : {0, 1})
      job.add(rank, descriptor_of(Operation::all_reduce, 4), 1000 + t * 1000, 1500 + t * 1000);
  job.add(0, descriptor_of(Operation::barrier), 61'000, {}, State::inside);
  const std::string svg = picture_of(job.records, {"error: rank 1 is missing"});
  CHECK(parts_in(svg, "<g role=\"img\">") == 2 * 30 + 1);
  CHECK_CONTAINS(svg, ">not over for 999 ms: dp.barrier</text>");
  CHECK_CONTAINS(svg, "dp.barrier(), call 61, inside shm, begins at 60.0 us, not over for 999 ms");
  CHECK_CONTAINS(svg, ">error: rank 1 is missing</text>");
}

TEST_CASE("texts of the program do not become markup") {
  SyntheticJob job{1};
  const std::string evil = "</svg><b id=\"evil\">&";
  job.records[0].mesh = job.records[0].coordinates = job.records[0].host = evil;
  job.records[0].groups[0].names = {evil};
  job.records[0].wait = record::Wait{evil, 5};
  job.add(0, descriptor_of(Operation::barrier), 1, 2);
  job.mark(0, 3, evil);
  const std::string svg = picture_of(job.records, {evil});
  CHECK_LACKS(svg, "<b id");
  CHECK(parts_in(svg, "</svg>") == 1);
}

TEST_CASE("a timeline of many ranks, or of none, is drawn") {
  SyntheticJob job{300};
  for (std::size_t rank = 0; rank < 300; ++rank)
    job.add(rank, descriptor_of(Operation::barrier), 5'000, 6'000);
  const std::string svg = picture_of(job.records);
  CHECK(parts_in(svg, "<g role=\"group\" aria-label=\"rank ") == 128);
  CHECK_CONTAINS(svg, "the first 128 are drawn");
  CHECK(picture_of({}).ends_with("</svg>\n"));
  CHECK(picture_of(SyntheticJob{2}.records).ends_with("</svg>\n"));
}
