// SPDX-License-Identifier: BSD-3-Clause
// The line that says where a tensor lies.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/placement.hpp"

using rankmesh::AxisRun;
using rankmesh::Rank;
using rankmesh::SpecError;
using rankmesh::TensorPlacement;
using rankmesh::UsageError;

namespace {

// The indices of an axis that a rank has, in the order of its memory: `0-3,8`.
std::string indices(const TensorPlacement& place, Rank rank, std::size_t axis = 0) {
  std::string text;
  for (const AxisRun& run : place.runs(rank, axis))
    text += (text.empty() ? "" : ",") + std::to_string(run.global) +
            (run.count == 1 ? "" : "-" + std::to_string(run.global + run.count - 1));
  return text;
}

std::string all_indices(const std::string& text) {
  const TensorPlacement place = TensorPlacement::parse(text);
  std::string result;
  for (const Rank rank : place.ranks().to_vector())
    result += (result.empty() ? "" : " | ") + indices(place, rank);
  return result;
}

}  // namespace

TEST_CASE("a place is printed as it was read") {
  for (const char* text : {
           "[16384,53248] bf16 @ pp=2,dp=4,tp=8 : (_, tp)",
           "[] f32 @ dp=4 : ()",
           "[12] f64 @ dp=2,tp=3 : (dp*tp)",
           "[12] i8 @ dp=2,tp=3 : (tp:ceil*dp:cyclic(2))",
           "[12] u64 @ tp=3 : (tp:cyclic)",
           "[12] f16 @ tp=3 : (tp:sizes(3,0,9))",
           "[12] f8_e4m3 @ tp=3 : (tp:lists(0-3,8; _; 7,5))",
           "[6144,4096] bf16 @ tp=16 | kv=8,copy=2 : (4096:kv*copy + 1024:kv + 1024:kv, _)",
           "[12,3] bf16 @ tp=4 on 8-11 : (4-7:tp + 0-3:tp, _)",
           "[12,3] bf16 @ pp=2,tp=2 on 3,1,0,7 at pp=1 : (tp, _)",
           "[12,3] bf16 @ pp=2,dp=2,tp=2 at pp=1,dp=0 : (tp, _)",
           "[12,3] f32 @ dp=4,tp=2 : (tp, _) sum(dp)",
           "[12] f32 @ dp=4,cp=2 : (_) sum(dp) sum(cp)",
           "[4] f32 @ tp=4 on 0-6:2 : (tp)",
           "[3] f32 @ megatron:tp=2,pp=2,world_size=8 at pp=1 : (tp)",
       }) {
    CAPTURE(text);
    CHECK(TensorPlacement::parse(text).to_string() == text);
  }
  CHECK(TensorPlacement::parse(" [ 4 , 4 ]bfloat16@tp=2:(tp : even,_)").to_string() ==
        "[4,4] bf16 @ tp=2 : (tp, _)");
  CHECK(TensorPlacement::parse("[4] f32 @ tp=auto on 0-3 : (0-3:tp)").to_string() ==
        "[4] f32 @ tp=auto on 0-3 : (tp)");
}

TEST_CASE("the shares of each rule") {
  CHECK(all_indices("[10] f32 @ tp=4 : (tp)") == "0-2 | 3-5 | 6-7 | 8-9");
  CHECK(all_indices("[10] f32 @ tp=4 : (tp:ceil)") == "0-2 | 3-5 | 6-8 | 9");
  CHECK(all_indices("[5] f32 @ tp=4 : (tp:ceil)") == "0-1 | 2-3 | 4 | ");
  CHECK(all_indices("[2] f32 @ tp=3 : (tp)") == "0 | 1 | ");
  CHECK(all_indices("[10] f32 @ tp=3 : (tp:sizes(1,0,9))") == "0 |  | 1-9");
  CHECK(all_indices("[10] f32 @ tp=3 : (tp:cyclic)") == "0,3,6,9 | 1,4,7 | 2,5,8");
  CHECK(all_indices("[10] f32 @ tp=2 : (tp:cyclic(3))") == "0-2,6-8 | 3-5,9");
  CHECK(all_indices("[10] f32 @ tp=2 : (tp:lists(9,0-3; 3,1))") == "9,0-3 | 3,1");
  CHECK(all_indices("[8] f32 @ a=2,b=2 : (a*b)") == "0-1 | 2-3 | 4-5 | 6-7");
  CHECK(all_indices("[8] f32 @ a=2,b=2 : (b*a)") == "0-1 | 4-5 | 2-3 | 6-7");
  CHECK(all_indices("[8] f32 @ a=2,b=2 : (a:cyclic*b)") == "0,2 | 4,6 | 1,3 | 5,7");
  CHECK(all_indices("[12] f32 @ tp=2 : (4:tp + 4:tp + 4:_)") == "0-1,4-5,8-11 | 2-3,6-11");
  CHECK(all_indices("[12] f32 @ tp=2 : (8-11:tp + 0-3:tp)") == "8-9,0-1 | 10-11,2-3");
  CHECK(all_indices("[4] f32 @ pp=2,tp=2 at pp=1 : (tp)") == "0-1 | 2-3");
  CHECK(TensorPlacement::parse("[4] f32 @ pp=2,tp=2 at pp=1 : (tp)").ranks().to_string() == "2-3");
  CHECK(
      TensorPlacement::parse("[4] f32 @ pp=2,tp=2 on 5,7,9,4 at pp=1 : (tp)").ranks().to_vector() ==
      std::vector<Rank>{9, 4});
}

TEST_CASE("the memory of a rank") {
  const auto place = TensorPlacement::parse("[6,4] bf16 @ dp=2,tp=3 : (tp, dp:cyclic)");
  CHECK(place.local_shape(4) == std::vector<std::int64_t>{2, 2});
  CHECK(place.local_count(4) == 4);
  CHECK(place.element_count() == 24);
  const std::vector<std::int64_t> there{3, 3};
  CHECK(place.local_offset(4, there) == 3);  // rank 4: dp=1, tp=1
  CHECK_FALSE(place.local_offset(1, there));
  CHECK(place.local_count(6) == 0);
  CHECK(place.runs(6, 0).empty());
  CHECK(place.local_shape(6) == std::vector<std::int64_t>{0, 0});
  CHECK(TensorPlacement::parse("[] f32 @ dp=2 : ()").local_count(1) == 1);
  CHECK_THROWS_AS((void)place.runs(0, 2), UsageError);
}

TEST_CASE("the same place on other ranks, and with another type") {
  const auto place = TensorPlacement::parse("[8] bf16 @ pp=2,tp=2 at pp=0 : (tp)");
  const auto moved = place.on(rankmesh::RankSet::parse("9,8,7,6"));
  CHECK(moved.to_string() == "[8] bf16 @ pp=2,tp=2 on 9,8,7,6 at pp=0 : (tp)");
  CHECK(indices(moved, 9) == "0-3");
  CHECK(moved.local_count(7) == 0);
  CHECK(place.as(rankmesh::DataType::float32).to_string() == "[8] f32 @ pp=2,tp=2 at pp=0 : (tp)");
  CHECK_THROWS_AS((void)place.on(rankmesh::RankSet::parse("1-3")), UsageError);
}

TEST_CASE("common elements") {
  const auto rows = TensorPlacement::parse("[8,8] f32 @ tp=4 : (tp, _)");
  const auto columns = TensorPlacement::parse("[8,8] f32 @ tp=4 on 2-5 : (_, tp)");
  CHECK(common_elements(rows, 0, columns, 2) == 4);
  CHECK(common_elements(rows, 0, rows, 0) == 16);
  CHECK(common_elements(rows, 0, rows, 1) == 0);
  CHECK(common_elements(rows, 0, columns, 0) == 0);
  CHECK_THROWS_AS((void)common_elements(rows, 0, TensorPlacement::parse("[8] f32 @ a=1 : (_)"), 0),
                  UsageError);
}

TEST_CASE("a wrong place is refused with its position") {
  struct Case {
    const char* text;
    std::size_t position;
    const char* reason;
  };
  for (const Case& wrong : {
           Case{"", 0, "the place is empty"},
           Case{"8 f32 @ tp=2 : (tp)", 0, "expected '[' and the sizes of the axes"},
           Case{"[8 f32 @ tp=2 : (tp)", 3, "expected ']' after the sizes of the axes"},
           Case{"[x] f32 @ tp=2 : (tp)", 1, "the size of an axis must be a whole number"},
           Case{"[9223372036854775807] f32 @ tp=2 : (tp)", 1,
                "the size of an axis is greater than 1125899906842624"},
           Case{"[4294967296,4294967296] i8 @ tp=2 : (tp, _)", 12,
                "the tensor has more than 1125899906842624 elements"},
           Case{"[8] bf17 @ tp=2 : (tp)", 4, "unknown type 'bf17'"},
           Case{"[8] bf16 tp=2 : (tp)", 9, "expected '@' after the type"},
           Case{"[8] f32 @ tp=x : (tp)", 13, "the size of 'tp' must be a whole number, got 'x'"},
           Case{"[8] f32 @ tp=2 (tp)", 15, "expected ',' '|' ';' or the end"},
           Case{"[8] f32 @ tp=auto : (tp)", 10,
                "'tp' is auto, but a place does not know the number of"},
           Case{"[8] f32 @ tp=2 : (dp)", 18, "'dp' is not a dimension of the mesh"},
           Case{"[8] f32 @ tp=2 : (tp, _)", 22, "more axes than the 1 of the shape"},
           Case{"[8,8] f32 @ tp=2 : (tp)", 20, "1 of 2 axes are described"},
           Case{"[8,8] f32 @ tp=2 : (tp, tp)", 24, "'tp' is used twice"},
           Case{"[8] f32 @ tp=2 : (tp*tp)", 21, "'tp' divides the same indices twice"},
           Case{"[8] f32 @ tp=2 : (tp) sum(tp)", 26, "'tp' is used twice"},
           Case{"[8] f32 @ tp=2 : (tp:odd)", 21, "unknown rule 'odd'"},
           Case{"[8] f32 @ tp=2 : (tp:cyclic(0))", 28, "the size of a block must be at least 1"},
           Case{"[8] f32 @ tp=2 : (tp:sizes(8))", 18,
                "'tp' has 2 coordinates, but 1 sizes are given"},
           Case{"[8] f32 @ tp=2 : (tp:sizes(5,2))", 18,
                "the sizes along 'tp' add up to 7 instead of 8"},
           Case{"[8] f32 @ tp=2 : (tp:lists(0-3; 4-8))", 18,
                "the list of coordinate 1 along 'tp' contains 8"},
           Case{"[8] f32 @ tp=2 : (tp:lists(0-3,2; _))", 18, "a rank would have the index 2 twice"},
           Case{"[8] f32 @ tp=2 : (4:tp + 2:tp)", 18,
                "the segments have 6 of the 8 indices of the axis"},
           Case{"[8] f32 @ tp=2 : (4:tp + tp)", 25, "a segment of a fused axis has no extent"},
           Case{"[8] f32 @ tp=2 : (tp + 4:tp)", 18, "a segment of a fused axis has no extent"},
           Case{"[8] f32 @ tp=2 : (4:tp + 5:tp)", 25, "the segment ends at 9"},
           Case{"[8] f32 @ tp=2 : (0-3:tp + 3-7:tp)", 18, "two segments have the index 3"},
           Case{"[8] f32 @ tp=2 on 0-2 : (tp)", 18, "the mesh has 2 ranks, but 3 are listed"},
           Case{"[8] f32 @ tp=2 at tp=2 : (_)", 18, "'tp' has no coordinate 2"},
           Case{"[8,8] f32 @ a=4 | b=2,c=2 : (a, b)", 12,
                "no view of the mesh has all dimensions that the place names"},
           Case{"[8] f32 @ tp=2 : (tp) x", 22, "expected 'sum(' or the end"},
           Case{"[9999999] f32 @ tp=2 : (tp:cyclic)", 24,
                "'tp' deals 9999999 blocks, more than the limit of 1048576"},
       }) {
    CAPTURE(wrong.text);
    try {
      (void)TensorPlacement::parse(wrong.text);
      FAIL_CHECK("accepted");
    } catch (const SpecError& error) {
      CHECK_MESSAGE(error.message().find(wrong.reason) != std::string::npos, error.message());
      CHECK(error.position() == wrong.position);
      CHECK_FALSE(error.hint().empty());
    }
  }
}

TEST_CASE("a place on a preset with ranks of its own can be on other ranks") {
  const std::string preset = "torch:shape=2,dim_names=x,rank_map=5x4";
  const TensorPlacement place = TensorPlacement::parse("[4] f32 @ " + preset + " : (x)");
  CHECK(indices(place, Rank{5}) == "0-1");
  CHECK(indices(place, Rank{4}) == "2-3");
  CHECK(TensorPlacement::parse(place.to_string()) == place);
  // Rank 0 of the mesh is its lowest rank, which has coordinate 1.
  const TensorPlacement moved = TensorPlacement::parse("[4] f32 @ " + preset + " on 0-1 : (x)");
  CHECK(indices(moved, Rank{0}) == "2-3");
  CHECK(indices(moved, Rank{1}) == "0-1");
  CHECK(place.on(rankmesh::RankSet::parse("0-1")) == moved);
  CHECK_THROWS_WITH_AS((void)TensorPlacement::parse("[4] f32 @ " + preset + " on 0-2 : (x)"),
                       doctest::Contains("the mesh has 2 ranks, but 3 are listed"), SpecError);
  const TensorPlacement grid = TensorPlacement::parse(
      "[4] f32 @ hypercommgrid:shape=2,dim_names=x,rank_offset=4 on 6-7 : (x)");
  CHECK(indices(grid, Rank{6}) == "0-1");
}
