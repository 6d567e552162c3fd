// SPDX-License-Identifier: BSD-3-Clause
// The parameters of several parts on this rank. Those of a part that the same ranks hold (its
// parameters of one kind) are one tensor of Replicas.
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
  Store(const Groups& groups, std::vector<std::vector<Parameter>> parts, std::int64_t zero)
      : parts_{std::move(parts)} {
    const std::array<Group*, kinds> of{&groups.data, &groups.data_tp, &groups.expert_data};
    for (int kind = 0; kind < kinds; ++kind) {
      std::vector<std::int64_t> sizes(parts_.size());
      std::int64_t all = 0;
      for (std::size_t part = 0; part < parts_.size(); ++part)
        for (const Parameter& p : parts_[part])
          if (p.kind == static_cast<Kind>(kind)) all += p.size(), sizes[part] += p.size();
      if (all == 0) continue;  // no experts, or no parts
      if (zero == 0)
        replicas_[kind] = std::make_unique<Copies>(*of[kind], sizes);
      else
        replicas_[kind] = std::make_unique<Shards>(*of[kind], sizes, zero);
      for (std::size_t part = 0; part < parts_.size(); ++part)
        load(part, static_cast<Kind>(kind), [](const Parameter& p, std::int64_t i, int state) {
          return state == 0 ? initial(p, i) : 0;
        });
    }
  }

  [[nodiscard]] const std::vector<std::vector<Parameter>>& parts() const { return parts_; }
  Weights weights(std::int64_t part) {
    return divide<In>(part, [&](Replicas& replicas) { return replicas.weights(part); });
  }
  Gradients gradients(std::int64_t part) {
    return divide<Out>(part, [&](Replicas& replicas) { return replicas.gradients(part); });
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
  void update(const AdamW& optimizer, std::int64_t step, double scale) {
    for (auto& replicas : replicas_)
      if (replicas) replicas->update(optimizer, step, scale);
  }

  /// Sets element i of parameter p to value(p, i, 0), and its means of AdamW to value(p, i, 1) and
  /// value(p, i, 2).
  template <class Value>
  void load(std::int64_t part, Kind kind, Value&& value) {
    Replicas::State state;
    for (int s = 0; s < 3; ++s)
      for (const Parameter& p : parts_[part])
        if (p.kind == kind)
          for (std::int64_t i = 0; i < p.size(); ++i) state[s].push_back(value(p, i, s));
    replicas_[static_cast<int>(kind)]->load(part, state);
  }

  /// Sets all elements of all parts; see above.
  template <class Value>
  void load(Value&& value) {
    for (std::size_t part = 0; part < parts_.size(); ++part)
      for (int kind = 0; kind < kinds; ++kind)
        if (replicas_[kind]) load(part, static_cast<Kind>(kind), value);
  }
  /// Calls use(p, s, elements) for each parameter p on the first of the ranks that have its
  /// elements. `s` is 0 for the weights, 1 and 2 for the means of AdamW. Collective over the groups
  /// of the parameters.
  template <class Use>
  void save(Use&& use) {
    for (std::size_t part = 0; part < parts_.size(); ++part)
      for (int kind = 0; kind < kinds; ++kind) {
        if (!replicas_[kind]) continue;
        const Replicas::State state = replicas_[kind]->state(part);
        if (!replicas_[kind]->is_first()) continue;
        for (int s = 0; s < 3; ++s) {
          In rest = state[s];
          for (const Parameter& p : parts_[part]) {
            if (p.kind != static_cast<Kind>(kind)) continue;
            use(p, s, rest.first(p.size()));
            rest = rest.subspan(p.size());
          }
        }
      }
  }

 private:
  // Cuts the tensors of a part into its parameters.
  template <class Span, class Tensor>
  std::vector<Span> divide(std::int64_t part, Tensor&& tensor) {
    std::array<Span, kinds> rest;
    for (int kind = 0; kind < kinds; ++kind)
      if (replicas_[kind]) rest[kind] = tensor(*replicas_[kind]);
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
