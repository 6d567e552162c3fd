// SPDX-License-Identifier: BSD-3-Clause
// The MLP of a layer: gelu(x W1^T + b1) W2^T + b2. tp divides the hidden elements: each member has
// some rows of W1, and the columns of W2 that belong to them.
//
//   forward:   norm | all_gather | W1, gelu, W2 | reduce_scatter | + bias, + x
//   backward:  the other way round, with all_gather and reduce_scatter exchanged
#pragma once

#include <cmath>
#include <deque>
#include <numbers>
#include <utility>

#include "config.hpp"
#include "layer_norm.hpp"
#include "matrix.hpp"
#include "part.hpp"

/// The activation of GPT-2, and its derivative times d (Hendrycks and Gimpel 2016).
inline Real gelu(Real x) {
  const Real scale = std::sqrt(2 / std::numbers::pi_v<Real>);
  return Real(0.5) * x * (1 + std::tanh(scale * (x + Real(0.044715) * x * x * x)));
}
inline Real gelu_backward(Real x, Real d) {
  const Real scale = std::sqrt(2 / std::numbers::pi_v<Real>);
  const Real t = std::tanh(scale * (x + Real(0.044715) * x * x * x));
  return d * (Real(0.5) * (1 + t) +
              Real(0.5) * x * (1 - t * t) * scale * (1 + 3 * Real(0.044715) * x * x));
}

class Mlp : public Part {
 public:
  Mlp(const Config& config, const Groups& groups)
      : tp_{groups.tp}, share_{config, groups}, width_{config.width}, mine_{config.hidden(), tp_} {
    const Slice all{Slice::of(width_, 1, 0)};
    const Real small = Real(0.02) / std::sqrt(2 * static_cast<Real>(config.layers));
    parameters = {{"mlp.gain", Kind::replicated, 1, width_, 1, all, 0, 1},
                  {"mlp.bias", Kind::replicated, 1, width_, 1, all, 0},
                  {"mlp.in", Kind::divided, 1, config.hidden(), width_, mine_, 0.02},
                  {"mlp.in_bias", Kind::divided, 1, config.hidden(), 1, mine_, 0},
                  {"mlp.out", Kind::divided, width_, config.hidden(), 1, mine_, small},
                  {"mlp.out_bias", Kind::replicated, 1, width_, 1, all, 0}};
  }

  Values forward(const Weights& w, Values x) override {
    Saved saved{normalise(x, width_), {}};
    const Values normal = scaled(saved.norm, w[gain], w[bias]);
    Values input(share_.rows * width_), sum(normal.size());
    tp_.all_gather(normal, input);  // each member needs all tokens for its hidden elements
    saved.before_gelu = linear(input, w[in], w[in_bias], share_.rows, width_, mine_.size());
    Values hidden = saved.before_gelu;
    for (Real& v : hidden) v = gelu(v);
    const Values partial = linear(hidden, w[out], {}, share_.rows, mine_.size(), width_);
    tp_.reduce_scatter(partial, sum);  // the sum over the hidden elements, divided by tokens
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += sum[i] + w[out_bias][i % width_];
    saved_.push_back(std::move(saved));
    return x;
  }

  Values backward(const Weights& w, const Gradients& g, Values dy) override {
    const Saved saved = std::move(saved_.front());
    saved_.pop_front();
    for (std::size_t i = 0; i < dy.size(); ++i) g[out_bias][i % width_] += dy[i];
    Values d_sum(share_.rows * width_), input(d_sum.size()), d_normal(dy.size());
    tp_.all_gather(dy, d_sum);  // the backward pass of the reduce_scatter
    Values hidden = saved.before_gelu;
    for (Real& v : hidden) v = gelu(v);
    Values d_hidden =
        linear_backward(hidden, w[out], d_sum, g[out], {}, share_.rows, mine_.size(), width_);
    for (std::size_t i = 0; i < d_hidden.size(); ++i)
      d_hidden[i] = gelu_backward(saved.before_gelu[i], d_hidden[i]);
    tp_.all_gather(scaled(saved.norm, w[gain], w[bias]), input);  // again, instead of keeping it
    const Values d_input = linear_backward(input, w[in], d_hidden, g[in], g[in_bias], share_.rows,
                                           width_, mine_.size());
    tp_.reduce_scatter(d_input, d_normal);  // the backward pass of the all_gather
    add(dy, norm_backward(saved.norm, w[gain], d_normal, g[gain], g[bias]));
    return dy;
  }
  [[nodiscard]] std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const auto& [norm, before_gelu] : saved_) sum += norm.bytes() + bytes_of(before_gelu);
    return sum;
  }

 private:
  enum { gain, bias, in, in_bias, out, out_bias };  // the parameters in their order
  struct Saved {
    Normalised norm;
    Values before_gelu;
  };

  Group& tp_;
  Share share_;
  std::int64_t width_;
  Slice mine_;  // the hidden elements of this member of tp
  std::deque<Saved> saved_;
};
