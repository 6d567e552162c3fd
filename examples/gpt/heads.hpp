// SPDX-License-Identifier: BSD-3-Clause
// The attention of the tokens of this rank to one block of keys and values, without communication.
// The block may be one of several: the sums over a row of scores are kept as if the block were the
// last one (Milakov and Gimelshein 2018; Dao et al. 2022).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "values.hpp"

/// The heads of this rank. Queries, keys and values are rows of width() elements.
struct Heads {
  std::int64_t sequences, tokens, heads, head;

  [[nodiscard]] std::int64_t width() const { return heads * head; }
  [[nodiscard]] std::int64_t elements() const { return sequences * tokens * width(); }
  [[nodiscard]] std::int64_t scores() const { return sequences * tokens * heads; }

  /// Calls use(i, h, q, j, first element of k) for each query i that sees key j. If the block is
  /// this rank's own, a token sees itself and the tokens before it; if it is an earlier one, a
  /// token sees all of it.
  template <class Use>
  void for_each_query(bool is_own, Use&& use) const {
    for (std::int64_t s = 0; s < sequences; ++s)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t h = 0; h < heads; ++h)
          use((s * tokens + t) * heads + h, (s * tokens + t) * width() + h * head,
              s * tokens * width() + h * head, is_own ? t + 1 : tokens);
  }
};

/// The sums over the keys of the blocks so far, for each query and head.
struct Attended {
  Values values;  ///< the values, weighted by exp(score - most)
  Values most;    ///< the highest score
  Values sum;     ///< of exp(score - most)

  explicit Attended(const Heads& heads)
      : values(heads.elements()),
        most(heads.scores(), -std::numeric_limits<Real>::infinity()),
        sum(heads.scores()) {}
};

inline Real dot(const Real* a, const Real* b, std::int64_t n) {
  Real sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
inline void add_scaled(Real* to, Real scale, const Real* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += scale * from[i];
}

/// Adds a block of keys and values to the sums.
inline void attend(const Heads& heads, In q, In k, In v, bool is_own, Attended& to) {
  const std::int64_t n = heads.head;
  const Real scale = 1 / std::sqrt(static_cast<Real>(n));
  Values scores(heads.tokens);
  heads.for_each_query(
      is_own, [&](std::int64_t row, std::int64_t query, std::int64_t first, std::int64_t keys) {
        Real most = to.most[row];
        for (std::int64_t j = 0; j < keys; ++j) {
          scores[j] = scale * dot(&q[query], &k[first + j * heads.width()], n);
          most = std::max(most, scores[j]);
        }
        const Real shrink = std::exp(to.most[row] - most);  // the earlier sums had another maximum
        to.most[row] = most;
        to.sum[row] *= shrink;
        for (std::int64_t i = 0; i < n; ++i) to.values[query + i] *= shrink;
        for (std::int64_t j = 0; j < keys; ++j) {
          const Real weight = std::exp(scores[j] - most);
          to.sum[row] += weight;
          add_scaled(&to.values[query], weight, &v[first + j * heads.width()], n);
        }
      });
}

/// Divides by the sums of all blocks: the values are then the output of the heads, and `most` is
/// the logarithm of the sum of exp(score), from which the backward pass computes the weights again.
inline void finish(const Heads& heads, Attended& sums) {
  for (std::int64_t row = 0; row < heads.scores(); ++row) {
    for (std::int64_t i = 0; i < heads.head; ++i)
      sums.values[row * heads.head + i] /= sums.sum[row];
    sums.most[row] += std::log(sums.sum[row]);
  }
}

/// Adds what a block of keys and values contributes to the gradients. `done` is the result of
/// finish(), `d_out` the gradient of its values.
inline void attend_backward(const Heads& heads, In q, In k, In v, bool is_own, const Attended& done,
                            In d_out, Out dq, Out dk, Out dv) {
  const std::int64_t n = heads.head;
  const Real scale = 1 / std::sqrt(static_cast<Real>(n));
  heads.for_each_query(is_own, [&](std::int64_t row, std::int64_t query, std::int64_t first,
                                   std::int64_t keys) {
    const Real mean = dot(&d_out[query], &done.values[query], n);  // over the weights of all keys
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t key = first + j * heads.width();
      const Real weight = std::exp(scale * dot(&q[query], &k[key], n) - done.most[row]);
      const Real d_score = weight * (dot(&d_out[query], &v[key], n) - mean) * scale;
      add_scaled(&dv[key], weight, &d_out[query], n);
      add_scaled(&dq[query], d_score, &k[key], n);
      add_scaled(&dk[key], d_score, &q[query], n);
    }
  });
}
