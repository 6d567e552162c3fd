// SPDX-License-Identifier: BSD-3-Clause
// Causal attention. tp divides the heads: each member computes the queries, keys and values of its
// heads for all tokens of the microbatch, and its part of the sum over the heads.
//
//   forward:   norm | all_gather | qkv, heads (cp: ring), out | reduce_scatter | + bias, + x
//   backward:  the other way round, with all_gather and reduce_scatter exchanged
#pragma once

#include <cmath>
#include <deque>
#include <utility>

#include "config.hpp"
#include "layer_norm.hpp"
#include "matrix.hpp"
#include "part.hpp"
#include "ring.hpp"

class Attention : public Part {
 public:
  Attention(const Config& config, const Groups& groups)
      : tp_{groups.tp},
        cp_{groups.cp},
        share_{config, groups},
        width_{config.width},
        heads_{share_.sequences, share_.tokens, config.heads / tp_.size(), config.head()} {
    const Slice all{Slice::of(width_, 1, 0)}, mine{width_, tp_};
    // As in GPT-2, the layers that add to x begin smaller where there are more of them.
    const Real small = Real(0.02) / std::sqrt(2 * static_cast<Real>(config.layers));
    parameters = {{"attention.gain", Kind::replicated, 1, width_, 1, all, 0, 1},
                  {"attention.bias", Kind::replicated, 1, width_, 1, all, 0},
                  {"attention.qkv", Kind::divided, 3, width_, width_, mine, 0.02},
                  {"attention.qkv_bias", Kind::divided, 3, width_, 1, mine, 0},
                  {"attention.out", Kind::divided, width_, width_, 1, mine, small},
                  {"attention.out_bias", Kind::replicated, 1, width_, 1, all, 0}};
  }

  Values forward(const Weights& w, Values x) override {
    Saved saved{normalise(x, width_), {}, {}, Attended{heads_}};
    const Values normal = scaled(saved.norm, w[gain], w[bias]);
    Values input(share_.rows * width_);
    tp_.all_gather(normal, input);  // each member needs all tokens for its heads

    const Values qkv = linear(input, w[qkv_], w[qkv_bias], share_.rows, width_, 3 * mine());
    saved.q = columns(qkv, 0, 1);
    saved.kv = columns(qkv, 1, 2);
    saved.attended = ring_forward(cp_, heads_, saved.q, saved.kv);

    const Values partial = linear(saved.attended.values, w[out], {}, share_.rows, mine(), width_);
    Values sum(normal.size());
    tp_.reduce_scatter(partial, sum);  // the sum over the heads, divided by tokens
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += sum[i] + w[out_bias][i % width_];
    saved_.push_back(std::move(saved));
    return x;
  }

  Values backward(const Weights& w, const Gradients& g, Values dy) override {
    const Saved saved = std::move(saved_.front());
    saved_.pop_front();
    for (std::size_t i = 0; i < dy.size(); ++i) g[out_bias][i % width_] += dy[i];
    Values d_sum(share_.rows * width_), input(d_sum.size());
    tp_.all_gather(dy, d_sum);  // the backward pass of the reduce_scatter
    const Values d_values = linear_backward(saved.attended.values, w[out], d_sum, g[out], {},
                                            share_.rows, mine(), width_);

    Values dq(d_values.size());
    const Values dkv = ring_backward(cp_, heads_, saved.q, saved.kv, saved.attended, d_values, dq);
    Values d_qkv(3 * dq.size());
    set_columns(d_qkv, 0, dq);
    set_columns(d_qkv, 1, In{dkv}.first(dq.size()));
    set_columns(d_qkv, 2, In{dkv}.subspan(dq.size()));

    // Gathering the input again needs less memory than keeping it.
    tp_.all_gather(scaled(saved.norm, w[gain], w[bias]), input);
    const Values d_input = linear_backward(input, w[qkv_], d_qkv, g[qkv_], g[qkv_bias], share_.rows,
                                           width_, 3 * mine());
    Values d_normal(dy.size());
    tp_.reduce_scatter(d_input, d_normal);  // the backward pass of the all_gather
    add(dy, norm_backward(saved.norm, w[gain], d_normal, g[gain], g[bias]));
    return dy;
  }
  [[nodiscard]] std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const auto& [norm, q, kv, done] : saved_)
      sum += norm.bytes() + bytes_of(q, kv, done.values, done.most, done.sum);
    return sum;
  }

 private:
  enum { gain, bias, qkv_, qkv_bias, out, out_bias };  // the parameters in their order
  struct Saved {
    Normalised norm;
    Values q, kv;
    Attended attended;
  };

  [[nodiscard]] std::int64_t mine() const { return heads_.width(); }
  // The rows of qkv have three parts. Returns `count` of them, one after the other.
  [[nodiscard]] Values columns(In qkv, std::int64_t first, std::int64_t count) const {
    Values values;
    for (std::int64_t c = first; c < first + count; ++c)
      for (std::int64_t r = 0; r < share_.rows; ++r) {
        const In row = qkv.subspan((3 * r + c) * mine(), mine());
        values.insert(values.end(), row.begin(), row.end());
      }
    return values;
  }
  void set_columns(Out qkv, std::int64_t c, In values) const {
    for (std::int64_t r = 0; r < share_.rows; ++r)
      std::ranges::copy(values.subspan(r * mine(), mine()),
                        qkv.subspan((3 * r + c) * mine(), mine()).begin());
  }

  Group &tp_, &cp_;
  Share share_;
  std::int64_t width_;
  Heads heads_;
  std::deque<Saved> saved_;
};
