// SPDX-License-Identifier: BSD-3-Clause
// The three products of a linear layer y = x W^T + b. The build chooses one of their
// implementations: matrix_blas.cpp where BLAS is installed, otherwise matrix_loops.cpp.
#pragma once

#include <cstdint>

#include "values.hpp"

/// y = x W^T: the output of a layer. x has rows x in, W has out x in, y has rows x out.
void times_transposed(In x, In w, Out y, std::int64_t rows, std::int64_t in, std::int64_t out);
/// dx = dy W: the gradient of the input.
void times(In dy, In w, Out dx, std::int64_t rows, std::int64_t in, std::int64_t out);
/// dW += dy^T x: the gradient of the weights.
void add_transposed_times(In dy, In x, Out dw, std::int64_t rows, std::int64_t in,
                          std::int64_t out);

/// Returns x W^T + b. Without a bias, pass an empty one.
inline Values linear(In x, In w, In b, std::int64_t rows, std::int64_t in, std::int64_t out) {
  Values y(rows * out);
  times_transposed(x, w, y, rows, in, out);
  if (!b.empty())
    for (std::int64_t r = 0; r < rows; ++r) add(Out{y}.subspan(r * out, out), b);
  return y;
}

/// Returns the gradient of x, and adds to the gradients of W and b. Without a bias, pass an empty
/// one.
inline Values linear_backward(In x, In w, In dy, Out dw, Out db, std::int64_t rows, std::int64_t in,
                              std::int64_t out) {
  add_transposed_times(dy, x, dw, rows, in, out);
  if (!db.empty())
    for (std::int64_t r = 0; r < rows; ++r) add(db, dy.subspan(r * out, out));
  Values dx(rows * in);
  times(dy, w, dx, rows, in, out);
  return dx;
}
