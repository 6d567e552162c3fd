// SPDX-License-Identifier: BSD-3-Clause
// A part of a layer: attention, an MLP, or experts.
#pragma once

#include <utility>
#include <vector>

#include "parameter.hpp"
#include "values.hpp"

/// The parameters of a part in the order in which the part lists them, and their gradients.
using Weights = std::vector<In>;
using Gradients = std::vector<Out>;

/// A part computes x + f(x). The rows of x are the tokens of this member of tp (Share::own_rows).
class Part {
 public:
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  virtual ~Part() = default;

  std::vector<Parameter> parameters;

  /// Returns x + f(x), and keeps what the backward pass needs.
  virtual Values forward(const Weights& w, Values x) = 0;
  /// Returns the gradient of x, and adds to the gradients of the parameters. Microbatches come in
  /// the order of forward().
  virtual Values backward(const Weights& w, const Gradients& g, Values dy) = 0;
  /// Returns the bytes that are kept for backward passes.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
};
