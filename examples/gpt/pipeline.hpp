// SPDX-License-Identifier: BSD-3-Clause
// Runs the passes of a schedule. A stage receives what a pass needs, in the order of its schedule,
// and sends the result without waiting for the receiver, so stages cannot wait for each other in a
// circle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "model.hpp"
#include "schedule.hpp"

class Pipeline {
 public:
  Pipeline(const Config& config, const Groups& groups, Model& model)
      : share_{config, groups},
        pp_{groups.pp},
        model_{model},
        last_chunk_{config.chunks - 1},
        width_{config.width},
        passes_{schedule(pp_.rank_in_group().value(), pp_.size(), config.chunks,
                         share_.microbatches)} {}

  /// Runs the forward and backward passes of a step. Returns the loss of this rank's tokens, on the
  /// last stage; 0 on the other stages.
  double run(const Text& text, std::int64_t step) {
    double loss = 0;
    for (const Pass& pass : passes_) {
      if (pass.is_forward)
        loss += forward(pass, text.microbatch(step, pass.microbatch, share_));
      else
        backward(pass, text.microbatch(step, pass.microbatch, share_));
      most_kept_ = std::max(most_kept_, model_.kept());
    }
    for (auto& message : sent_) message.wait();
    sent_.clear();
    model_.reduce_vocabulary();
    return loss;
  }
  /// Returns the most bytes that this rank has kept for backward passes.
  [[nodiscard]] std::int64_t most_kept() const { return most_kept_; }

 private:
  double forward(const Pass& pass, const Tokens& tokens) {
    const bool is_input = pp_.is_first() && pass.chunk == 0;
    Values x = is_input ? model_.embed(tokens) : receive(rankmesh::prev, 2 * pass.chunk);
    x = model_.forward(pass.chunk, std::move(x));
    if (pp_.is_last() && pass.chunk == last_chunk_) return model_.loss(tokens, x);
    // After the last stage, the next chunk of the first stage continues.
    send(std::move(x), rankmesh::next, 2 * (pass.chunk + (pp_.is_last() ? 1 : 0)));
    return 0;
  }

  void backward(const Pass& pass, const Tokens& tokens) {
    const bool is_output = pp_.is_last() && pass.chunk == last_chunk_;
    Values dy = is_output ? model_.loss_backward() : receive(rankmesh::next, 2 * pass.chunk + 1);
    dy = model_.backward(pass.chunk, std::move(dy), pass.microbatch + 1 == share_.microbatches);
    if (pp_.is_first() && pass.chunk == 0)
      model_.embed_backward(tokens, dy);
    else
      send(std::move(dy), rankmesh::prev, 2 * (pass.chunk - (pp_.is_first() ? 1 : 0)) + 1);
  }

  // The tag is 2 x the chunk of the receiver, + 1 for gradients. Messages with the same tag arrive
  // in the order of the microbatches.
  Values receive(rankmesh::Peer from, std::int64_t tag) {
    Values values(share_.own_rows * width_);
    pp_.recv(values, from, static_cast<int>(tag));
    return values;
  }
  void send(Values values, rankmesh::Peer to, std::int64_t tag) {
    while (!sent_.empty() && sent_.front().test()) sent_.pop_front();
    sent_.push_back(pp_.send_async(std::move(values), to, static_cast<int>(tag)));
  }

  Share share_;
  Group& pp_;
  Model& model_;
  std::int64_t last_chunk_, width_;
  std::vector<Pass> passes_;
  std::int64_t most_kept_ = 0;
  std::deque<Message> sent_;  // messages that may still be read
};
