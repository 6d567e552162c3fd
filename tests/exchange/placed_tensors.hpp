// SPDX-License-Identifier: BSD-3-Clause
// Tensors in places, whose elements have known values.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "support/mpi_world.hpp"

namespace rankmesh_test {

/// Memory of this rank for one tensor.
struct Local {
  /// @param gap  The elements between neighbouring rows. With 0, there are no strides.
  explicit Local(const rankmesh::TensorPlacement& place, std::int64_t gap = 0)
      : type{place.type()}, shape{place.local_shape(rankmesh::Rank{rank()})} {
    std::int64_t stride = 1;
    strides.resize(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      strides[axis] = stride;
      stride = stride * shape[axis] + gap;
    }
    count = place.local_count(rankmesh::Rank{rank()});
    memory.resize(static_cast<std::size_t>(std::max<std::int64_t>(stride, 1)) * size_of(type));
    std::memset(memory.data(), 0x5a, memory.size());
    if (gap == 0) strides.clear();
  }
  /// Returns the address of the element with this offset in a dense array.
  [[nodiscard]] std::byte* at(std::int64_t offset) {
    std::int64_t place = strides.empty() ? offset : 0;
    for (std::size_t axis = strides.size(); axis-- > 0; offset /= shape[axis])
      place += offset % shape[axis] * strides[axis];
    return memory.data() + static_cast<std::size_t>(place) * size_of(type);
  }
  [[nodiscard]] double get(std::int64_t offset) {
    return rankmesh::visit(type, [&]<class T>(std::type_identity<T>) {
      T value;
      std::memcpy(&value, at(offset), sizeof value);
      if constexpr (std::is_arithmetic_v<T>)
        return static_cast<double>(value);
      else
        return static_cast<double>(static_cast<float>(value));
    });
  }
  void set(std::int64_t offset, double number) {
    rankmesh::visit(type, [&]<class T>(std::type_identity<T>) {
      T value;
      if constexpr (std::is_arithmetic_v<T>)
        value = static_cast<T>(number);
      else
        value = T{static_cast<float>(number)};
      std::memcpy(at(offset), &value, sizeof value);
    });
  }
  [[nodiscard]] rankmesh::Buffer buffer() {
    const auto elements = static_cast<std::int64_t>(memory.size() / size_of(type));
    return {memory.data(), strides.empty() ? count : elements, type};
  }
  [[nodiscard]] rankmesh::exchange::TensorSource source() {
    rankmesh::exchange::TensorSource result;
    result.memory = buffer().as_input();
    result.strides = strides;
    return result;
  }
  [[nodiscard]] rankmesh::exchange::TensorTarget target() {
    rankmesh::exchange::TensorTarget result;
    result.memory = buffer();
    result.strides = strides;
    return result;
  }

  rankmesh::DataType type;
  std::vector<std::int64_t> shape, strides;
  std::int64_t count = 0;
  std::vector<std::byte> memory;
};

/// The distance of the elements that are set and checked: of a large tensor every 101st, which
/// meets all rows and columns in 1 % of the time.
inline std::int64_t step_of(const rankmesh::TensorPlacement& place) {
  return place.element_count() > 100'000 ? 101 : 1;
}

/// An element that this rank has: its number in the tensor, and its place in the rank's memory.
struct OwnElement {
  std::int64_t number, offset;
};

/// Returns the elements that this rank has. Tests use a place many times, and to find its elements
/// takes longer than to move them, so they are found once.
inline const std::vector<OwnElement>& own_elements(const rankmesh::TensorPlacement& place) {
  static std::map<std::string, std::vector<OwnElement>> known;
  const auto [found, is_new] = known.try_emplace(place.to_string());
  if (!is_new) return found->second;
  std::vector<std::int64_t> index(place.shape().size());
  for (std::int64_t number = 0; number < place.element_count(); number += step_of(place)) {
    std::int64_t rest = number;
    for (std::size_t axis = index.size(); axis-- > 0; rest /= place.shape()[axis])
      index[axis] = rest % place.shape()[axis];
    if (const auto offset = place.local_offset(rankmesh::Rank{rank()}, index))
      found->second.push_back({number, *offset});
  }
  return found->second;
}

/// Returns a value that every type holds exactly, also as a part of a sum.
inline double value_of(std::int64_t number, int round) {
  return static_cast<double>((number * 7 + round) % 13);
}

inline void fill(const rankmesh::TensorPlacement& place, Local& local, int round) {
  for (const OwnElement& element : own_elements(place))
    local.set(element.offset, value_of(element.number, round));
}

/// Checks the elements, which are `factor` times those of fill().
inline void check(const rankmesh::TensorPlacement& place, Local& local, int round,
                  double factor = 1) {
  const std::vector<OwnElement>& elements = own_elements(place);
  std::int64_t wrong = 0;
  for (const OwnElement& element : elements)
    if (local.get(element.offset) != factor * value_of(element.number, round)) ++wrong;
  if (step_of(place) == 1) CHECK(std::ssize(elements) == local.count);
  CHECK(wrong == 0);
}

/// Returns the place that a text describes. In it, `N` stands for the number of ranks, `L` for the
/// last rank, and `H` for half of the ranks.
inline rankmesh::TensorPlacement place(std::string text) {
  const auto replace = [&](char letter, int number) {
    for (std::size_t at = text.find(letter); at != std::string::npos; at = text.find(letter))
      text.replace(at, 1, std::to_string(number));
  };
  replace('N', size());
  replace('L', size() - 1);
  replace('H', std::max(1, size() / 2));
  return rankmesh::TensorPlacement::parse(text);
}
/// Returns the transfer between two such places.
inline rankmesh::TensorTransfer transfer(const std::string& from, const std::string& to) {
  return {place(from), place(to)};
}

/// Pairs of such places, each with one type.
inline const std::vector<std::pair<std::string, std::string>> pairs_of_one_type{
    {"[12,7] f32 @ tp=N : (tp, _)", "[12,7] f32 @ tp=N : (_, tp)"},
    {"[12,7] f32 @ tp=N : (tp, _)", "[12,7] f32 @ tp=N : (tp, _)"},
    {"[5,3] i16 @ tp=N : (_, tp)", "[5,3] i16 @ tp=N : (_, _)"},
    {"[40] f64 @ tp=N : (tp:cyclic(3))", "[40] f64 @ tp=N : (tp)"},
    {"[40,6] u8 @ tp=N : (tp, _)", "[40,6] u8 @ tp=H : (tp, _)"},
    {"[40,6] i32 @ tp=H : (_, tp)", "[40,6] i32 @ tp=N : (tp, _)"},
    {"[9,8,5] bf16 @ tp=N : (_, tp, _)", "[9,8,5] bf16 @ tp=N : (_, _, tp)"},
    {"[2] f32 @ tp=N : (tp)", "[2] f32 @ tp=N : (_)"},
};

}  // namespace rankmesh_test
