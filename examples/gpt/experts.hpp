// SPDX-License-Identifier: BSD-3-Clause
// Experts in the place of an MLP: a router chooses two of them for each token. ep divides the
// experts. The members of tp and cp have different tokens already, so tp needs no collective here.
//
//   forward:   norm, router | dispatch | expert | collect_choices | weighted sum, + x
//   backward:  weight x gradient | dispatch_choices | expert | combine | router, norm
//
// Each rank sends any number of tokens to each expert: no token is dropped, so that the result does
// not depend on the mesh.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "config.hpp"
#include "layer_norm.hpp"
#include "matrix.hpp"
#include "mlp.hpp"
#include "part.hpp"

class Experts : public Part {
 public:
  Experts(const Config& config, const Groups& groups)
      : width_{config.width},
        hidden_{config.hidden()},
        experts_{config.experts},
        dispatcher_{groups.ep, ExpertMap::contiguous(experts_, groups.ep.size())} {
    const Slice all{Slice::of(width_, 1, 0)}, mine{experts_, groups.ep};
    const Real small = Real(0.02) / std::sqrt(2 * static_cast<Real>(config.layers));
    parameters = {{"experts.gain", Kind::replicated, 1, width_, 1, all, 0, 1},
                  {"experts.bias", Kind::replicated, 1, width_, 1, all, 0},
                  {"experts.router", Kind::replicated, experts_, width_, 1, all, 0.02},
                  {"experts.in", Kind::expert, 1, experts_, hidden_ * width_, mine, 0.02},
                  {"experts.in_bias", Kind::expert, 1, experts_, hidden_, mine, 0},
                  {"experts.out", Kind::expert, 1, experts_, hidden_ * width_, mine, small},
                  {"experts.out_bias", Kind::expert, 1, experts_, width_, mine, 0}};
  }

  Values forward(const Weights& w, Values x) override {
    Saved s{.norm = normalise(x, width_)};
    const Values normal = scaled(s.norm, w[gain], w[bias]);
    const auto [ids, weights] = choose(linear(normal, w[router], {}, tokens(x), width_, experts_));
    s.ids = ids;
    s.weights = weights;
    s.route = dispatcher_.route(ids, top_k);
    s.rows.resize(s.route.rows() * width_);
    dispatcher_.dispatch(s.route, normal, s.rows);  // tokens go to the ranks of their experts

    Values results(s.rows.size());
    s.before_gelu.resize(s.route.rows() * hidden_);
    for_each_expert(s.route, [&](std::int64_t e, std::int64_t first, std::int64_t n) {
      const Values z = linear(part(s.rows, first, n, width_), of(w[in], e), of(w[in_bias], e), n,
                              width_, hidden_);
      std::ranges::copy(z, s.before_gelu.begin() + first * hidden_);
      Values active = z;
      for (Real& v : active) v = gelu(v);
      std::ranges::copy(linear(active, of(w[out], e), of(w[out_bias], e), n, hidden_, width_),
                        results.begin() + first * width_);
    });

    s.choices.resize(top_k * x.size());
    dispatcher_.collect_choices(s.route, results, s.choices);  // and their results return
    for (std::size_t c = 0; c < s.weights.size(); ++c)
      for (std::int64_t i = 0; i < width_; ++i)
        x[c / top_k * width_ + i] += s.weights[c] * s.choices[c * width_ + i];
    saved_.push_back(std::move(s));
    return x;
  }

  Values backward(const Weights& w, const Gradients& g, Values dy) override {
    const Saved s = std::move(saved_.front());
    saved_.pop_front();
    // The result is the sum of weight x choice.
    Values d_choices(s.choices.size()), d_weights(s.weights.size());
    for (std::size_t c = 0; c < s.weights.size(); ++c)
      for (std::int64_t i = 0; i < width_; ++i) {
        const Real d = dy[c / top_k * width_ + i];
        d_choices[c * width_ + i] = s.weights[c] * d;
        d_weights[c] += s.choices[c * width_ + i] * d;
      }

    Values d_results(s.rows.size()), d_rows(s.rows.size());
    dispatcher_.dispatch_choices(s.route, d_choices, d_results);  // the way of the tokens
    for_each_expert(s.route, [&](std::int64_t e, std::int64_t first, std::int64_t n) {
      const In z = part(s.before_gelu, first, n, hidden_);
      Values active(z.begin(), z.end());
      for (Real& v : active) v = gelu(v);
      Values dz = linear_backward(active, of(w[out], e), part(d_results, first, n, width_),
                                  of(g[out], e), of(g[out_bias], e), n, hidden_, width_);
      for (std::size_t i = 0; i < dz.size(); ++i) dz[i] = gelu_backward(z[i], dz[i]);
      std::ranges::copy(linear_backward(part(s.rows, first, n, width_), of(w[in], e), dz,
                                        of(g[in], e), of(g[in_bias], e), n, width_, hidden_),
                        d_rows.begin() + first * width_);
    });
    Values d_normal(dy.size());
    dispatcher_.combine(s.route, d_rows, std::vector<float>(s.weights.size(), 1), d_normal);

    add(d_normal,
        linear_backward(scaled(s.norm, w[gain], w[bias]), w[router], d_scores(s, d_weights),
                        g[router], {}, tokens(dy), width_, experts_));
    add(dy, norm_backward(s.norm, w[gain], d_normal, g[gain], g[bias]));
    return dy;
  }
  [[nodiscard]] std::int64_t bytes() const override {
    std::int64_t sum = 0;
    for (const Saved& s : saved_)
      sum += s.norm.bytes() + bytes_of(s.ids, s.weights, s.rows, s.before_gelu, s.choices);
    return sum;
  }

 private:
  enum { gain, bias, router, in, in_bias, out, out_bias };  // the parameters in their order
  static constexpr std::int64_t top_k = 2;
  struct Saved {
    Normalised norm;
    std::vector<std::int32_t> ids{};  // tokens x 2: the experts that were chosen
    Values weights{};                 // tokens x 2
    ExpertRoute route{};
    Values rows{}, before_gelu{};  // of the tokens that came to this rank
    Values choices{};              // tokens x 2 x width: what the experts returned
  };

  [[nodiscard]] std::int64_t tokens(const Values& x) const { return std::ssize(x) / width_; }
  static In part(const Values& rows, std::int64_t first, std::int64_t n, std::int64_t width) {
    return In{rows}.subspan(first * width, n * width);
  }
  // Expert e's elements of a parameter; e counts the experts of this rank.
  template <class Span>
  [[nodiscard]] Span of(Span parameter, std::int64_t e) const {
    const std::size_t size = parameter.size() / dispatcher_.map().slots_per_rank();
    return parameter.subspan(e * size, size);
  }
  // Calls use(expert, first row, number of rows).
  template <class Use>
  static void for_each_expert(const ExpertRoute& route, Use&& use) {
    for (std::int64_t e = 0; e < std::ssize(route.counts()); ++e)
      use(e, route.offsets()[e], route.counts()[e]);
  }

  // Returns the two experts with the highest scores of each token, and their weights: softmax over
  // the two scores.
  [[nodiscard]] std::pair<std::vector<std::int32_t>, Values> choose(const Values& scores) const {
    std::vector<std::int32_t> ids;
    Values weights;
    for (std::size_t t = 0; t < scores.size(); t += experts_) {
      const In row = In{scores}.subspan(t, experts_);
      const auto first = std::ranges::max_element(row) - row.begin();
      auto second = first == 0 ? 1 : 0;
      for (std::int64_t e = 0; e < experts_; ++e)
        if (e != first && row[e] > row[second]) second = static_cast<int>(e);
      const Real ratio = std::exp(row[second] - row[first]);
      ids.insert(ids.end(), {static_cast<std::int32_t>(first), second});
      weights.insert(weights.end(), {1 / (1 + ratio), ratio / (1 + ratio)});
    }
    return {ids, weights};
  }
  // The backward pass of choose().
  [[nodiscard]] Values d_scores(const Saved& s, const Values& d_weights) const {
    Values d(s.ids.size() / top_k * experts_);
    for (std::size_t c = 0; c < s.ids.size(); c += top_k) {
      const Real mean = s.weights[c] * d_weights[c] + s.weights[c + 1] * d_weights[c + 1];
      for (std::size_t j = c; j < c + top_k; ++j)
        d[c / top_k * experts_ + s.ids[j]] = s.weights[j] * (d_weights[j] - mean);
    }
    return d;
  }

  std::int64_t width_, hidden_, experts_;
  ExpertDispatcher dispatcher_;
  std::deque<Saved> saved_;
};
