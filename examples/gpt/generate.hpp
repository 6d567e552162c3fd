// SPDX-License-Identifier: BSD-3-Clause
// Lets a model write text, on a mesh of its own: the first ranks of the job, which divide the model
// by tp.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rankmesh/exchange/redistribution.hpp>
#include <rankmesh/transfer/plan.hpp>

#include "checkpoint.hpp"
#include "tensors.hpp"
#include "trainer.hpp"

/// The ranks that write. Its functions are collective over all ranks of the job; those that do not
/// write have no model.
class Writer {
 public:
  /// `members` is the number of ranks, the size of tp.
  Writer(Config config, std::int64_t members, const std::string& text_of_training)
      : config_{config}, layout_{complete("tp=" + std::to_string(members))} {
    config_.batch = config_.microbatch = config_.chunks = 1;
    config_.zero = 0;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (members < 1 || members > ranks)
      throw rankmesh::UsageError{"--writers is " + std::to_string(members) + ", but the job has " +
                                     std::to_string(ranks) + " ranks",
                                 "choose a number from 1 to the number of ranks"};
    MPI_Comm_split(MPI_COMM_WORLD, rank < members ? 0 : MPI_UNDEFINED, rank, &comm_);
    if (comm_ == MPI_COMM_NULL) return;
    mesh_.emplace(comm_, layout_);
    groups_ = std::make_unique<Groups>(*mesh_);
    trainer_ = std::make_unique<Trainer>(config_, *groups_, text_of_training);
  }
  void close() {
    trainer_.reset();
    groups_.reset();
    if (mesh_) mesh_->close();
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }

  /// Reads the weights from a checkpoint, which any mesh has written.
  void read(const std::string& checkpoint) {
    if (trainer_) load(checkpoint, *trainer_, *groups_, layout_, 1);
  }
  /// Gets the weights from a model that was trained on the layout `mesh`. `world` is the group of
  /// all its ranks.
  void receive(Model& trained, const std::string& mesh, Group& world) {
    using namespace rankmesh;
    Tensors source{trained, mesh, 1};
    source.collect();
    std::unique_ptr<Tensors> target;
    if (trainer_) target = std::make_unique<Tensors>(trainer_->model(), layout_, 1);

    std::vector<TensorTransfer> moves;
    std::vector<exchange::TensorSource> from;
    std::vector<exchange::TensorTarget> to;
    for (const Tensor& tensor : source.list) {
      if (tensor.is_copy) continue;
      if (target) to.emplace_back(target->list[moves.size()].values);
      moves.push_back({tensor.place, place_of(tensor.parameter, 0, layout_), tensor.name});
      from.emplace_back(tensor.values);
    }
    to.resize(moves.size());  // ranks that do not write get nothing
    exchange::Redistribution move{world, plan_transfer(moves)};
    move.start(from, to).wait();
    if (target) target->put();
  }

  /// Continues a text by `count` bytes. Bytes that cannot be printed are returned as `?`. Returns
  /// nothing on ranks that do not write.
  std::string write(std::string text, std::int64_t count) {
    if (!trainer_) return {};
    for (std::int64_t n = 0; n < count; ++n) text += static_cast<char>(next(text, n));
    for (char& byte : text)  // terminals take some bytes as commands
      if (byte != '\n' && (byte < ' ' || byte > '~')) byte = '?';
    return text;
  }

 private:
  // Chooses byte n. All members choose the same one.
  int next(const std::string& text, std::int64_t n) {
    // The model sees the last bytes. Tokens behind them change nothing, because no token sees a
    // later one, and experts drop no token.
    const auto seen = std::min(std::ssize(text), config_.context);
    Tokens tokens{std::vector<int>(config_.context), {}};
    for (std::int64_t i = 0; i < seen; ++i)
      tokens.inputs[i] = static_cast<unsigned char>(text[text.size() - seen + i]);
    const Values scores = trainer_->model().scores(tokens, seen - 1);

    // Chooses by probability, where higher scores count more than in training.
    const Real most = std::ranges::max(scores);
    Values sums;
    for (const Real score : scores)
      sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp((score - most) / 0.7));
    const double point = static_cast<double>(mixed(n + 1) >> 11) * 0x1p-53 * sums.back();
    return static_cast<int>(std::ranges::upper_bound(sums, point) - sums.begin());
  }

  Config config_;
  std::string layout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::optional<Mesh> mesh_;
  std::unique_ptr<Groups> groups_;  // null on ranks that do not write, as the trainer
  std::unique_ptr<Trainer> trainer_;
};
