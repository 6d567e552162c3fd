// SPDX-License-Identifier: BSD-3-Clause
// Which results meshinfo bench takes for correct.
#include "meshinfo/measure.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

using namespace rankmesh;
using namespace rankmesh::meshinfo;

constexpr std::int64_t count = 8;

// The inputs of a member.
template <class T>
std::vector<T> inputs(const BenchCase& work, std::int64_t member) {
  std::vector<T> values(count);
  store_input(work, reinterpret_cast<std::byte*>(values.data()), count, member);
  return values;
}

// What the members of a group compute in the type itself.
template <class T>
std::vector<T> results(const BenchCase& work, std::int64_t members) {
  std::vector<T> values = inputs<T>(work, 0);
  for (std::int64_t m = 1; m < members; ++m) {
    const std::vector<T> other = inputs<T>(work, m);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(work.reduction == ReduceOp::prod ? values[i] * other[i]
                                                                  : values[i] + other[i]);
  }
  if (work.reduction == ReduceOp::avg)
    for (T& value : values) value = static_cast<T>(value / static_cast<T>(members));
  return values;
}

template <class T>
std::int64_t wrong(const BenchCase& work, const std::vector<T>& values, std::int64_t members) {
  return count_wrong(work, reinterpret_cast<const std::byte*>(values.data()), count, 0, members);
}

}  // namespace

TEST_CASE("integers that wrap around in a large group are correct") {
  constexpr std::int64_t members = 100;  // sums of about 150
  for (const ReduceOp reduction : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod}) {
    CAPTURE(static_cast<int>(reduction));
    const BenchCase work{.type = DataType::int8, .reduction = reduction, .bytes = count};
    auto values = results<std::int8_t>(work, members);
    CHECK(wrong(work, values, members) == 0);
    ++values[3];
    CHECK(wrong(work, values, members) == 1);
  }
  const BenchCase work{.type = DataType::uint8, .bytes = count};
  CHECK(wrong(work, results<std::uint8_t>(work, 300), 300) == 0);
}

TEST_CASE("products of a large group are finite") {
  constexpr std::int64_t members = 4096;
  const BenchCase work{.type = DataType::float32, .reduction = ReduceOp::prod, .bytes = 4 * count};
  auto values = results<float>(work, members);
  CHECK(std::isfinite(values[0]));
  CHECK(wrong(work, values, members) == 0);
  values[0] *= 2;
  CHECK(wrong(work, values, members) == 1);
}
