// SPDX-License-Identifier: BSD-3-Clause
// Layer norm. Each row is normalised alone, so the rows can be divided over ranks.
#pragma once

#include <cmath>
#include <cstdint>

#include "values.hpp"

/// What the backward pass needs.
struct Normalised {
  Values rows;     ///< with mean 0 and variance 1
  Values inverse;  ///< of the standard deviation of each row

  [[nodiscard]] std::int64_t bytes() const { return bytes_of(rows, inverse); }
};

/// Normalises the rows of x.
inline Normalised normalise(In x, std::int64_t width) {
  const std::int64_t rows = std::ssize(x) / width;
  Normalised result{Values(x.size()), Values(rows)};
  for (std::int64_t r = 0; r < rows; ++r) {
    const In row = x.subspan(r * width, width);
    Real mean = 0, variance = 0;
    for (const Real v : row) mean += v / static_cast<Real>(width);
    for (const Real v : row) variance += (v - mean) * (v - mean) / static_cast<Real>(width);
    result.inverse[r] = 1 / std::sqrt(variance + Real{1e-5});
    for (std::int64_t i = 0; i < width; ++i)
      result.rows[r * width + i] = (row[i] - mean) * result.inverse[r];
  }
  return result;
}

/// Returns the normalised rows x gain + bias.
inline Values scaled(const Normalised& x, In gain, In bias) {
  Values y(x.rows.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = x.rows[i] * gain[i % gain.size()] + bias[i % gain.size()];
  return y;
}

/// Returns the gradient of the input, and adds to those of gain and bias.
inline Values norm_backward(const Normalised& x, In gain, In dy, Out dgain, Out dbias) {
  const auto width = std::ssize(gain);
  Values dx(dy.size());
  for (std::int64_t r = 0; r < std::ssize(x.inverse); ++r) {
    const std::int64_t first = r * width;
    Real sum = 0, product = 0;  // of the gradient of the normalised row, averaged
    for (std::int64_t i = 0; i < width; ++i) {
      const Real d = dy[first + i], n = x.rows[first + i];
      dbias[i] += d;
      dgain[i] += d * n;
      sum += d * gain[i] / static_cast<Real>(width);
      product += d * gain[i] * n / static_cast<Real>(width);
    }
    for (std::int64_t i = 0; i < width; ++i)
      dx[first + i] = (dy[first + i] * gain[i] - sum - x.rows[first + i] * product) * x.inverse[r];
  }
  return dx;
}
