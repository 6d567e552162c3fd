// SPDX-License-Identifier: BSD-3-Clause
// The embedding of tokens, and the loss of the predicted tokens, which use the same matrix. The
// first stage of the pipeline embeds, the last one predicts, and both have the matrix. tp divides
// the vocabulary.
//
//   embed:  look up own tokens | reduce_scatter | + positions
//   loss:   norm | all_gather | logits of own tokens | all_reduce (maximum), all_reduce (sums)
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "config.hpp"
#include "layer_norm.hpp"
#include "matrix.hpp"
#include "part.hpp"

class Vocabulary {
 public:
  Vocabulary(const Config& config, const Groups& groups)
      : tp_{groups.tp},
        share_{config, groups},
        width_{config.width},
        tokens_of_vocabulary_{config.vocabulary},
        mine_{config.vocabulary, tp_},
        tokens_of_step_{config.batch * config.context} {
    const auto all_if = [](bool has, std::int64_t n) { return Slice::of(has ? n : 0, 1, 0); };
    const bool embeds = groups.pp.is_first(), predicts = groups.pp.is_last();
    const Slice position = all_if(embeds, config.context), norm = all_if(predicts, width_);
    shared = {{"embedding", Kind::divided, 1, config.vocabulary, width_, mine_, 0.02}};
    own = {{"positions", Kind::replicated, 1, config.context, width_, position, 0.02},
           {"gain", Kind::replicated, 1, width_, 1, norm, 0, 1},
           {"bias", Kind::replicated, 1, width_, 1, norm, 0}};
  }

  // The functions below take the parameters of both lists, one after the other.
  std::vector<Parameter> shared;  ///< the matrix, which the first and the last stage both have
  std::vector<Parameter> own;     ///< positions on the first stage, the norm on the last one

  /// Returns the vectors of this rank's tokens. `tokens` are those of all members of tp.
  Values embed(const Weights& w, const std::vector<int>& tokens) {
    Values partial(share_.rows * width_), x(share_.own_rows * width_);
    for (std::int64_t r = 0; r < share_.rows; ++r)
      if (mine_.contains(tokens[r]))
        std::ranges::copy(row(w[embedding], tokens[r] - mine_.begin()), &partial[r * width_]);
    tp_.reduce_scatter(partial, x);  // one member has the token; the others add zeros
    for (std::int64_t r = 0; r < share_.own_rows; ++r)
      add(row(Out{x}, r), row(w[positions], position(r)));
    return x;
  }

  /// Adds to the gradients of the embeddings.
  void embed_backward(const Gradients& g, const std::vector<int>& tokens, const Values& dx) {
    Values all(share_.rows * width_);
    tp_.all_gather(dx, all);  // the backward pass of the reduce_scatter
    for (std::int64_t r = 0; r < share_.rows; ++r)
      if (mine_.contains(tokens[r]))
        add(row(g[embedding], tokens[r] - mine_.begin()), row(In{all}, r));
    for (std::int64_t r = 0; r < share_.own_rows; ++r)
      add(row(g[positions], position(r)), row(In{dx}, r));
  }

  /// Returns the scores of all tokens of the vocabulary as the token that follows row r. All
  /// members of tp get them.
  Values scores(const Weights& w, const Values& x, std::int64_t r) {
    const Values mine = logits(w, normalise(x, width_));
    Values all(tokens_of_vocabulary_);
    std::copy_n(&mine[r * mine_.size()], mine_.size(), &all[mine_.begin()]);
    tp_.all_reduce(all);  // each member has its part, and zeros
    return all;
  }

  /// Returns the scores of this member's part of the vocabulary as the next token of each row.
  Values logits(const Weights& w, const Normalised& norm) {
    const Values normal = scaled(norm, w[gain], w[bias]);
    Values all(share_.rows * width_);
    tp_.all_gather(normal, all);  // each member needs all tokens for its part of the vocabulary
    return linear(all, w[embedding], {}, share_.rows, width_, mine_.size());
  }

  /// Returns what this microbatch contributes to the mean cross-entropy of the step, and keeps what
  /// the backward pass needs. `targets` are the tokens that follow those of all members of tp.
  double loss(const Weights& w, const Values& x, const std::vector<int>& targets) {
    Saved saved{normalise(x, width_), {}, targets};
    saved.probabilities = logits(w, saved.norm);
    Values& p = saved.probabilities;
    Values most(share_.rows, -std::numeric_limits<Real>::infinity());
    for (std::size_t i = 0; i < p.size(); ++i)
      most[i / mine_.size()] = std::max(most[i / mine_.size()], p[i]);
    tp_.all_reduce(most, ReduceOp::max);  // the highest score of each token

    Values sums(2 * share_.rows);  // of exp(score); and the score of the right token
    for (std::int64_t r = 0; r < share_.rows; ++r) {
      if (mine_.contains(targets[r]))
        sums[share_.rows + r] = p[r * mine_.size() + targets[r] - mine_.begin()] - most[r];
      for (std::int64_t i = 0; i < mine_.size(); ++i)
        sums[r] += p[r * mine_.size() + i] = std::exp(p[r * mine_.size() + i] - most[r]);
    }
    tp_.all_reduce(sums);  // instead of all scores of all tokens
    double loss = 0;
    for (std::int64_t r = 0; r < share_.rows; ++r) {
      loss += (std::log(sums[r]) - sums[share_.rows + r]) / static_cast<double>(tokens_of_step_);
      for (std::int64_t i = 0; i < mine_.size(); ++i) p[r * mine_.size() + i] /= sums[r];
    }
    saved_.push_back(std::move(saved));
    return loss;
  }

  /// Returns the gradient of x, the argument of loss(), and adds to the gradients of the
  /// parameters.
  Values loss_backward(const Weights& w, const Gradients& g) {
    Saved saved = std::move(saved_.front());
    saved_.pop_front();
    Values& d_logits = saved.probabilities;
    for (std::int64_t r = 0; r < share_.rows; ++r)
      if (mine_.contains(saved.targets[r]))
        d_logits[r * mine_.size() + saved.targets[r] - mine_.begin()] -= 1;
    for (Real& d : d_logits) d /= static_cast<Real>(tokens_of_step_);

    Values all(share_.rows * width_), d_normal(share_.own_rows * width_);
    tp_.all_gather(scaled(saved.norm, w[gain], w[bias]), all);  // again, instead of keeping it
    const Values d_all = linear_backward(all, w[embedding], d_logits, g[embedding], {}, share_.rows,
                                         width_, mine_.size());
    tp_.reduce_scatter(d_all, d_normal);  // the sum over the vocabulary, divided by tokens
    return norm_backward(saved.norm, w[gain], d_normal, g[gain], g[bias]);
  }
  /// Returns the bytes that are kept for backward passes.
  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& [norm, probabilities, targets] : saved_)
      sum += norm.bytes() + bytes_of(probabilities, targets);
    return sum;
  }

 private:
  enum { embedding, positions, gain, bias };  // the parameters in their order
  struct Saved {
    Normalised norm;
    Values probabilities;
    std::vector<int> targets;
  };

  template <class Span>
  Span row(Span all, std::int64_t r) const {
    return all.subspan(r * width_, width_);
  }
  // The place of row r of this rank in its sequence.
  [[nodiscard]] std::int64_t position(std::int64_t r) const {
    const std::int64_t row_of_all = tp_.rank_in_group().value() * share_.own_rows + r;
    return share_.first + row_of_all % share_.tokens;
  }

  Group& tp_;
  Share share_;
  std::int64_t width_, tokens_of_vocabulary_;
  Slice mine_;  // the tokens of the vocabulary that this member of tp has
  std::int64_t tokens_of_step_;
  std::deque<Saved> saved_;
};
