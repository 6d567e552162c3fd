// SPDX-License-Identifier: BSD-3-Clause
#include "bench_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "rankmesh/base/narrow_float.hpp"

namespace meshinfo {

using rankmesh::Operation;
using rankmesh::ReduceOp;

namespace {

// 1 or 2: sums stay exact in every type, and products are powers of two.
double value(std::int64_t member, std::int64_t index) {
  return static_cast<double>(1 + (member * 5 + index * 3 + index / 7) % 2);
}

double reduced(ReduceOp reduction, std::int64_t members, std::int64_t index) {
  double result = value(0, index);
  for (std::int64_t m = 1; m < members; ++m) {
    const double other = value(m, index);
    switch (reduction) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        result += other;
        break;
      case ReduceOp::prod:
        result *= other;
        break;
      case ReduceOp::min:
        result = std::min(result, other);
        break;
      case ReduceOp::max:
        result = std::max(result, other);
        break;
    }
  }
  return reduction == ReduceOp::avg ? result / static_cast<double>(members) : result;
}

// The value at `index` of a rank's output.
double expected(const BenchCase& work, std::int64_t self, std::int64_t size, std::int64_t block,
                std::int64_t index) {
  switch (work.operation) {
    case Operation::broadcast:
      return value(work.root, index);
    case Operation::reduce:
    case Operation::all_reduce:
      return reduced(work.reduction, size, index);
    case Operation::all_gather:
    case Operation::gather:
      return value(index / block, index % block);
    case Operation::reduce_scatter:
      return reduced(work.reduction, size, self * block + index);
    case Operation::scatter:
      return value(work.root, self * block + index);
    case Operation::all_to_all:
      return value(index / block, self * block + index % block);
    default:
      return 0;
  }
}

template <class T>
bool is_close(T found, double wanted) {
  if constexpr (std::is_integral_v<T>) return static_cast<double>(found) == std::trunc(wanted);
  double tolerance = 0.02;  // float16 and bfloat16
  if (std::is_floating_point_v<T>) tolerance = 1e-5;
  if (sizeof(T) == 1) tolerance = 0.15;
  const auto number = static_cast<double>(static_cast<float>(found));
  return std::abs(number - wanted) <= tolerance * wanted;
}

}  // namespace

void store_input(rankmesh::DataType type, std::byte* to, std::int64_t count, std::int64_t member) {
  visit(type, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T stored{static_cast<T>(static_cast<float>(value(member, i)))};
      std::memcpy(to + i * static_cast<std::int64_t>(sizeof(T)), &stored, sizeof(T));
    }
  });
}

std::int64_t count_wrong(const BenchCase& work, const std::byte* results, std::int64_t count,
                         std::int64_t rank_in_group, std::int64_t group_size) {
  if (!has_output(work.operation, rank_in_group == work.root)) return 0;
  const std::int64_t block = size_of(work, group_size).count;
  std::int64_t wrong = 0;
  visit(work.type, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < count; ++i) {
      T found;
      std::memcpy(&found, results + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      if (!is_close(found, expected(work, rank_in_group, group_size, block, i))) ++wrong;
    }
  });
  return wrong;
}

}  // namespace meshinfo
