// SPDX-License-Identifier: BSD-3-Clause
// The products without a library. The innermost loops run over neighbouring elements.
#include <algorithm>

#include "matrix.hpp"

void times_transposed(In x, In w, Out y, std::int64_t rows, std::int64_t in, std::int64_t out) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t o = 0; o < out; ++o) {
      Real sum = 0;
      for (std::int64_t i = 0; i < in; ++i) sum += x[r * in + i] * w[o * in + i];
      y[r * out + o] = sum;
    }
}

void times(In dy, In w, Out dx, std::int64_t rows, std::int64_t in, std::int64_t out) {
  std::ranges::fill(dx, 0);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t o = 0; o < out; ++o) {
      const Real d = dy[r * out + o];
      for (std::int64_t i = 0; i < in; ++i) dx[r * in + i] += d * w[o * in + i];
    }
}

void add_transposed_times(In dy, In x, Out dw, std::int64_t rows, std::int64_t in,
                          std::int64_t out) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t o = 0; o < out; ++o) {
      const Real d = dy[r * out + o];
      for (std::int64_t i = 0; i < in; ++i) dw[o * in + i] += d * x[r * in + i];
    }
}
