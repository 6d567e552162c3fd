// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <set>
#include <string_view>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/routes/route_table.hpp"

using rankmesh::DataType;
using rankmesh::TypeClass;

namespace {

constexpr DataType type_of_visit(DataType type) {
  return visit(type, []<class T>(std::type_identity<T>) { return rankmesh::DataTypeOf<T>::value; });
}

static_assert(type_of_visit(DataType::bfloat16) == DataType::bfloat16);

}  // namespace

TEST_CASE("visit passes the C++ type of every DataType") {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(DataType::float8_e5m2); ++i) {
    const auto type = static_cast<DataType>(i);
    CAPTURE(to_string(type));
    CHECK(type_of_visit(type) == type);
    CHECK(visit(type, []<class T>(std::type_identity<T>) { return sizeof(T); }) == size_of(type));
    names.insert(to_string(type));
  }
  CHECK(names.size() == 14);
  CHECK(to_string(DataType::float8_e5m2) == "float8_e5m2");
}

TEST_CASE("the class of every type") {
  using enum DataType;
  for (const auto type : {int8, uint8, int16, uint16, int32, uint32, int64, uint64})
    CHECK(class_of(type) == TypeClass::integer);
  for (const auto type : {float32, float64}) CHECK(class_of(type) == TypeClass::floating);
  for (const auto type : {float16, bfloat16}) CHECK(class_of(type) == TypeClass::half);
  for (const auto type : {float8_e4m3, float8_e5m2}) CHECK(class_of(type) == TypeClass::fp8);
}
