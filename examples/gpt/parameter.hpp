// SPDX-License-Identifier: BSD-3-Clause
// The parameters of a part of the model: which ranks have which elements of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "groups.hpp"

/// Which ranks hold the same elements of a parameter, and so add up its gradient.
enum class Kind : std::uint8_t {
  divided,     ///< tp divides it; Groups::data has the same elements
  replicated,  ///< every member of tp has it; Groups::data_tp
  expert,      ///< ep divides it; Groups::expert_data
};
constexpr int kinds = 3;

/// An array of outer x length x inner elements, of which a rank has a slice along the axis in the
/// middle.
struct Parameter {
  std::string name;  ///< in its layer; see tensors.hpp
  Kind kind;
  std::int64_t outer, length, inner;
  Slice slice;
  Real deviation;           ///< of the normal distribution of the initial values
  Real mean = 0;            ///< of them
  std::int64_t offset = 0;  ///< the number of the first element in the whole model

  [[nodiscard]] std::int64_t size() const { return outer * slice.size() * inner; }
  [[nodiscard]] std::int64_t whole() const { return outer * length * inner; }
  /// Returns the number that element i of this rank has in the whole model.
  [[nodiscard]] std::int64_t number(std::int64_t i) const {
    const std::int64_t row = i / inner, o = row / slice.size();
    return offset + (o * length + slice.begin() + row % slice.size()) * inner + i % inner;
  }
};

/// Gives the parameters of a part their places in the whole model, from `offset` on. Returns the
/// number after the last.
inline std::int64_t place(std::vector<Parameter>& parameters, std::int64_t offset) {
  for (Parameter& parameter : parameters) {
    parameter.offset = offset;
    offset += parameter.whole();
  }
  return offset;
}

/// Returns 64 bits that depend on all bits of n: splitmix64 (Steele, Lea, Flood 2014).
inline std::uint64_t mixed(std::uint64_t n) {
  n += 0x9e3779b97f4a7c15;
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9;
  n = (n ^ (n >> 27)) * 0x94d049bb133111eb;
  return n ^ (n >> 31);
}

/// Returns the initial value of element i. It depends on the number of the element in the whole
/// model, so that every mesh begins with the same model.
inline Real initial(const Parameter& parameter, std::int64_t i) {
  const auto n = static_cast<std::uint64_t>(parameter.number(i));
  const double u = (static_cast<double>(mixed(2 * n) >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(mixed(2 * n + 1) >> 11) * 0x1p-53;
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  return parameter.mean + parameter.deviation * static_cast<Real>(normal);
}
