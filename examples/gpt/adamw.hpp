// SPDX-License-Identifier: BSD-3-Clause
// The optimizer AdamW (Loshchilov and Hutter 2019). It treats every element alone, so it does not
// need to know how the parameters are divided.
#pragma once

#include <cmath>

#include "values.hpp"

struct AdamW {
  double rate;
  double decay = 0.1;
  double beta1 = 0.9, beta2 = 0.95;

  /// Updates parameters w, and the means m and v of their gradients g and of its squares.
  /// @param step   the number of the step, from 1.
  /// @param scale  a factor for the gradients, which clips them.
  void update(std::int64_t step, double scale, Out w, In g, Out m, Out v) const {
    const double correct1 = 1 - std::pow(beta1, step), correct2 = 1 - std::pow(beta2, step);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double gradient = scale * g[i];
      m[i] = static_cast<Real>(beta1 * m[i] + (1 - beta1) * gradient);
      v[i] = static_cast<Real>(beta2 * v[i] + (1 - beta2) * gradient * gradient);
      const double change = m[i] / correct1 / (std::sqrt(v[i] / correct2) + 1e-8);
      w[i] -= static_cast<Real>(rate * (change + decay * w[i]));
    }
  }
};
