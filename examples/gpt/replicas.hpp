// SPDX-License-Identifier: BSD-3-Clause
// Data parallelism: all members of a group have the same tensors, compute the gradients of
// different tokens, and add them up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <rankmesh/exchange/named_tensors.hpp>

#include "adamw.hpp"
#include "groups.hpp"

/// Bytes that a rank has allocated for parameters.
struct AllocatedBytes {
  std::int64_t weights = 0, gradients = 0, optimizer = 0;
};

/// Tensors with their gradients and the state of the optimizer. All functions are collective over
/// the group.
class Replicas {
 public:
  explicit Replicas(Group& group) : group_{group} {}
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;
  virtual ~Replicas() = default;

  /// Returns the values of tensor t, until release().
  virtual In weights(std::int64_t t) = 0;
  virtual void release(std::int64_t t) = 0;
  /// Returns memory to which this rank adds its gradients; zeros at first.
  virtual Out gradients(std::int64_t t) = 0;
  /// Says that the gradients of this rank are complete. Adding them up goes on meanwhile.
  virtual void reduce(std::int64_t t) = 0;

  /// Waits until the gradients are added up. Returns this member's share of the sum of their
  /// squares: the members together count each gradient once.
  virtual double squares() = 0;
  virtual void update(const AdamW& optimizer, std::int64_t step, double scale) = 0;

  /// The weights of a tensor, and the two means of AdamW.
  using State = std::array<Values, 3>;
  /// Returns one of the three.
  virtual Values state(std::int64_t t, int s) = 0;
  virtual void load(std::int64_t t, const State& state) = 0;
  /// Returns this rank's part of all of them. The places are on the members of the group.
  using LoadedTensors = std::vector<rankmesh::exchange::LoadedTensor>;
  virtual LoadedTensors parts() = 0;
  /// Says that the parts have changed.
  virtual void changed() {}
  [[nodiscard]] virtual AllocatedBytes bytes() const = 0;
  [[nodiscard]] Group& group() const { return group_; }

 protected:
  /// Returns whether this rank is the first one of those that have these tensors.
  [[nodiscard]] bool is_first() const { return group_.is_first(); }
  static double squares_of(In values) {
    double sum = 0;
    for (const Real v : values) sum += v * v;
    return sum;
  }

 private:
  Group& group_;
};

/// Plain data parallelism: each member keeps everything. Gradients are added up in buckets, while
/// the backward pass computes the next ones.
class Copies : public Replicas {
 public:
  Copies(Group& group, const std::vector<std::int64_t>& sizes)
      : Replicas{group}, bucket_{group, {.bytes = 64 << 10, .op = ReduceOp::sum}} {
    for (const std::int64_t size : sizes) {
      states_.push_back({Values(size), Values(size), Values(size)});
      gradients_.emplace_back(size);
    }
  }

  In weights(std::int64_t t) override { return states_[t][0]; }
  void release(std::int64_t /*t*/) override {}
  Out gradients(std::int64_t t) override { return gradients_[t]; }
  void reduce(std::int64_t t) override {
    if (!gradients_[t].empty()) bucket_.add(gradients_[t]);
  }
  double squares() override {
    bucket_.wait();
    double sum = 0;
    if (is_first())  // the others have the same
      for (const Values& gradient : gradients_) sum += squares_of(gradient);
    return sum;
  }
  void update(const AdamW& optimizer, std::int64_t step, double scale) override {
    for (std::size_t t = 0; t < states_.size(); ++t) {
      auto& [w, m, v] = states_[t];
      optimizer.update(step, scale, w, gradients_[t], m, v);
      std::ranges::fill(gradients_[t], 0);
    }
  }
  Values state(std::int64_t t, int s) override { return states_[t][s]; }
  void load(std::int64_t t, const State& state) override { states_[t] = state; }
  LoadedTensors parts() override {
    LoadedTensors parts;
    for (State& state : states_)
      for (Values& values : state)
        parts.push_back({std::to_string(parts.size()),
                         rankmesh::TensorPlacement::parse(
                             "[" + std::to_string(values.size()) +
                             "] f64 @ replica=" + std::to_string(group().size()) + " : (_)"),
                         values});
    return parts;
  }
  [[nodiscard]] AllocatedBytes bytes() const override {
    AllocatedBytes sum;
    for (const auto& [w, m, v] : states_)
      sum.weights += bytes_of(w), sum.optimizer += bytes_of(m, v);
    for (const Values& gradient : gradients_) sum.gradients += bytes_of(gradient);
    return sum;
  }

 private:
  Bucket bucket_;
  std::vector<State> states_;
  std::vector<Values> gradients_;
};

/// ZeRO (Rajbhandari et al. 2020): each member updates an equal part of the weights. The stages
/// differ only in what is kept whole: 1 divides the state of the optimizer, 2 also the gradients, 3
/// also the weights.
class Shards : public Replicas {
 public:
  /// @param accumulates  the gradients of several microbatches add up before they are divided, so
  ///                     they are whole until then, whatever the stage.
  Shards(Group& group, const std::vector<std::int64_t>& sizes, std::int64_t stage, bool accumulates)
      : Replicas{group},
        w_{group, sizes, {.bytes = 64 << 10, .keep_whole = stage < 3}},
        g_{w_.like({.keep_whole = stage < 2 || accumulates, .op = ReduceOp::sum})},
        m_{w_.like()},
        v_{w_.like()} {}

  In weights(std::int64_t t) override { return w_.gather(t); }
  void release(std::int64_t t) override { w_.release(t); }
  Out gradients(std::int64_t t) override { return g_.local(t); }
  void reduce(std::int64_t t) override { g_.reduce(t); }
  double squares() override {
    double sum = 0;
    for (std::int64_t b = 0; b < g_.buckets(); ++b) sum += squares_of(g_.mine(b));
    return sum;
  }
  void update(const AdamW& optimizer, std::int64_t step, double scale) override {
    for (std::int64_t b = 0; b < w_.buckets(); ++b)
      optimizer.update(step, scale, w_.mine(b), g_.mine(b), m_.mine(b), v_.mine(b));
    changed();
  }
  void changed() override {
    for (ShardedBuffer* buffer : {&w_, &m_, &v_}) buffer->changed();
  }
  Values state(std::int64_t t, int s) override {
    ShardedBuffer& buffer = s == 0 ? w_ : s == 1 ? m_ : v_;
    const In values = buffer.gather(t);
    Values copy(values.begin(), values.end());
    buffer.release(t);
    return copy;
  }
  void load(std::int64_t t, const State& state) override {
    w_.load(t, state[0]);
    m_.load(t, state[1]);
    v_.load(t, state[2]);
  }
  LoadedTensors parts() override {
    LoadedTensors parts = w_.loaded("weights");
    std::ranges::copy(m_.loaded("means"), std::back_inserter(parts));
    std::ranges::copy(v_.loaded("means of squares"), std::back_inserter(parts));
    return parts;
  }
  [[nodiscard]] AllocatedBytes bytes() const override {
    return {w_.bytes(), g_.bytes(), m_.bytes() + v_.bytes()};
  }

 private:
  ShardedBuffer w_, g_, m_, v_;
};
