// SPDX-License-Identifier: BSD-3-Clause
// The numbers of the model: rows of elements, row-major.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// The type of all weights, activations and gradients. With double, losses that are computed in
/// another order agree in about 12 digits, so that a missing collective cannot be taken for
/// rounding.
using Real = double;
using Values = std::vector<Real>;
using In = std::span<const Real>;
using Out = std::span<Real>;

/// Returns the bytes of the elements of lists.
template <class... Lists>
std::int64_t bytes_of(const Lists&... lists) {
  return static_cast<std::int64_t>(((lists.size() * sizeof(lists[0])) + ...));
}

/// Adds b to a.
inline void add(Out a, In b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
}
