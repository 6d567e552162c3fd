// SPDX-License-Identifier: BSD-3-Clause
// Axes, gaps and orders of arrays in memory.
#include "rankmesh/base/array_shape.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "rankmesh/base/error.hpp"

using rankmesh::ArrayShape;
using rankmesh::UsageError;

TEST_CASE("an array has no gaps in whatever order its axes are") {
  CHECK(ArrayShape{}.has_no_gaps());
  CHECK(ArrayShape{}.count() == 1);
  const ArrayShape rows{{2, 3, 4}, {12, 4, 1}}, columns{{2, 3, 4}, {1, 2, 6}},
      mixed{{2, 3, 4}, {4, 8, 1}};
  CHECK(rows == ArrayShape::row_major({2, 3, 4}));
  for (const ArrayShape& shape : {rows, columns, mixed}) {
    CHECK(shape.has_no_gaps());
    CHECK(shape.count() == 24);
    CHECK(shape.reach() == 24);
  }
  CHECK(rows.is_row_major());
  CHECK(!rows.is_column_major());
  CHECK(columns.is_column_major());
  CHECK(!columns.is_row_major());
  CHECK(!mixed.is_row_major());
  CHECK(!mixed.is_column_major());
}

TEST_CASE("arrays with gaps, elements that occur twice and negative strides have gaps") {
  for (const ArrayShape& shape :
       {ArrayShape{{2, 3}, {4, 1}}, ArrayShape{{3}, {2}}, ArrayShape{{2, 3}, {0, 1}},
        ArrayShape{{2, 2}, {1, 1}}, ArrayShape{{3}, {-1}}, ArrayShape{{2, 3, 2}, {6, 1, 1}}})
    CHECK_MESSAGE(!shape.has_no_gaps(), shape.to_string());
  CHECK(ArrayShape{{2, 3}, {4, 1}}.reach() == 7);
  CHECK(ArrayShape{{2, 3}, {4, 1}}.to_string() == "[2,3] with the strides [4,1]");
}

TEST_CASE("the strides of axes of length 1 and of empty arrays do not matter") {
  const ArrayShape row{{1, 3}, {0, 1}}, column{{3, 1}, {1, 100}};
  CHECK(row.is_row_major());
  CHECK(row.is_column_major());
  CHECK(column.has_no_gaps());
  CHECK(column.reach() == 3);
  const ArrayShape empty{{0, 3}, {7, 7}};
  CHECK(empty.has_no_gaps());
  CHECK(empty.reach() == 0);
}

TEST_CASE("wrong axes are refused") {
  CHECK_THROWS_AS((ArrayShape{{2, 3}, {1}}), UsageError);
  CHECK_THROWS_AS((ArrayShape{{-1}, {1}}), UsageError);
  CHECK_THROWS_AS((ArrayShape{std::vector<int>(9, 1), std::vector<int>(9, 1)}), UsageError);
  CHECK((ArrayShape{std::vector<int>(8, 1), std::vector<int>(8, 1)}.axes() == 8));
}
