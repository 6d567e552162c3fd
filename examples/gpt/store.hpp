// SPDX-License-Identifier: BSD-3-Clause
// The parameters of several parts on this rank. The parameters of part t that have the same kind
// are tensor t of the Replicas of this kind.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "parameter.hpp"
#include "part.hpp"
#include "replicas.hpp"

class Store {
 public:
  /// Collective over the groups of the parameters. The parameters get their initial values.
  Store(const Groups& groups, std::vector<std::vector<Parameter>> parts, std::int64_t zero,
        bool accumulates)
      : parts_{std::move(parts)} {
    const std::array<Group*, kinds> of{&groups.data, &groups.data_tp, &groups.expert_data};
    for (int kind = 0; kind < kinds; ++kind) {
      std::vector<std::int64_t> sizes(parts_.size());
      std::int64_t all = 0;
      for (std::size_t part = 0; part < parts_.size(); ++part)
        for (const Parameter& p : parts_[part])
          if (p.kind == static_cast<Kind>(kind)) all += p.size(), sizes[part] += p.size();
      if (all == 0) continue;  // no parameters of this kind
      if (zero == 0)
        replicas_[kind] = std::make_unique<Copies>(*of[kind], sizes);
      else
        replicas_[kind] = std::make_unique<Shards>(*of[kind], sizes, zero, accumulates);
    }
    fill(initial);
  }

  [[nodiscard]] const std::vector<std::vector<Parameter>>& parts() const { return parts_; }
  Weights weights(std::int64_t part) {
    return divide<In>(part, [&](int kind) { return replicas_[kind]->weights(part); });
  }
  Gradients gradients(std::int64_t part) {
    return divide<Out>(part, [&](int kind) { return replicas_[kind]->gradients(part); });
  }
  void release(std::int64_t part) {
    for (auto& replicas : replicas_)
      if (replicas) replicas->release(part);
  }
  void reduce(std::int64_t part) {
    for (auto& replicas : replicas_)
      if (replicas) replicas->reduce(part);
  }
  double squares() {
    double sum = 0;
    for (auto& replicas : replicas_)
      if (replicas) sum += replicas->squares();
    return sum;
  }
  [[nodiscard]] AllocatedBytes bytes() const {
    AllocatedBytes sum;
    for (const auto& replicas : replicas_) {
      if (!replicas) continue;
      const AllocatedBytes of = replicas->bytes();
      sum = {sum.weights + of.weights, sum.gradients + of.gradients, sum.optimizer + of.optimizer};
    }
    return sum;
  }
  void update(const AdamW& optimizer, std::int64_t step, double scale) {
    for (auto& replicas : replicas_)
      if (replicas) replicas->update(optimizer, step, scale);
  }

  /// Returns the elements of the parameters of a part: the weights (s = 0), or one of the two means
  /// of AdamW (1, 2). Collective over the groups of the parameters.
  std::vector<Values> state(std::int64_t part, int s) {
    std::array<Values, kinds> of_kind;
    for (int kind = 0; kind < kinds; ++kind)
      if (replicas_[kind]) of_kind[kind] = replicas_[kind]->state(part, s);
    std::vector<Values> result;
    for (const In values : divide<In>(part, [&](int kind) { return In{of_kind[kind]}; }))
      result.emplace_back(values.begin(), values.end());
    return result;
  }
  /// Sets them. All ranks that have them must pass the same.
  void load(std::int64_t part, const std::vector<Replicas::State>& states) {
    std::array<Replicas::State, kinds> of_kind;
    for (std::size_t i = 0; i < states.size(); ++i)
      for (int s = 0; s < 3; ++s) {
        Values& all = of_kind[static_cast<int>(parts_[part][i].kind)][s];
        all.insert(all.end(), states[i][s].begin(), states[i][s].end());
      }
    for (int kind = 0; kind < kinds; ++kind)
      if (replicas_[kind]) replicas_[kind]->load(part, of_kind[kind]);
  }
  /// Calls use(kind, replicas) for the parameters of each kind.
  template <class Use>
  void for_each_replicas(Use&& use) {
    for (int kind = 0; kind < kinds; ++kind)
      if (replicas_[kind]) use(kind, *replicas_[kind]);
  }
  /// Sets element i of each parameter p to value(p, i), and its means of AdamW to 0.
  template <class Value>
  void fill(Value&& value) {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      std::vector<Replicas::State> states;
      for (const Parameter& p : parts_[part]) {
        Replicas::State& state = states.emplace_back();
        for (Values& values : state) values.resize(p.size());
        for (std::int64_t i = 0; i < p.size(); ++i) state[0][i] = value(p, i);
      }
      load(part, states);
    }
  }

 private:
  // Cuts the tensors of a part, one per kind, into its parameters.
  template <class Span, class Tensor>
  std::vector<Span> divide(std::int64_t part, Tensor&& tensor) {
    std::array<Span, kinds> rest;
    for (int kind = 0; kind < kinds; ++kind)
      if (replicas_[kind]) rest[kind] = tensor(kind);
    std::vector<Span> result;
    for (const Parameter& p : parts_[part]) {
      Span& from = rest[static_cast<int>(p.kind)];
      result.push_back(from.first(p.size()));
      from = from.subspan(p.size());
    }
    return result;
  }

  std::vector<std::vector<Parameter>> parts_;
  std::array<std::unique_ptr<Replicas>, kinds> replicas_;  // null without such parameters
};
