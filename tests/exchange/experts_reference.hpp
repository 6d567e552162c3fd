// SPDX-License-Identifier: BSD-3-Clause
// Random steps of expert dispatch, compared with a computation in one process. Used on host and on
// device memory.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/exchange/expert_dispatcher.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

namespace experts_reference {

using namespace rankmesh;
using exchange::ExpertDispatcher;
using exchange::ExpertMap;
using exchange::ExpertRoute;

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline std::string mesh_text() {
  return rankmesh_test::size() % 2 == 0 ? "dp=2,ep=auto" : "dp=1,ep=auto";
}

// The arguments of one step, the same on every rank of a group. `tokens` has all ranks' numbers.
struct Shape {
  std::vector<std::int64_t> tokens;
  std::int64_t hidden = 0, top_k = 0, experts = 0;
  std::vector<std::int32_t> slots;
  exchange::ExpertDispatcherOptions options;
};

inline Shape random_shape(std::mt19937& random, std::int64_t ranks) {
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random()) % n; };
  Shape shape;
  constexpr std::int64_t numbers[] = {0, 1, 2, 7, 33};
  for (std::int64_t r = 0; r < ranks; ++r) shape.tokens.push_back(numbers[below(5)]);
  shape.hidden = 1 + below(9);
  if (below(4) == 0) shape.hidden = 1031;  // more than one piece of the sum
  shape.experts = 1 + below(12);
  shape.top_k = 1 + below(4);
  // Every expert has a slot. The other slots are copies or empty.
  const std::int64_t per_rank = (shape.experts + ranks - 1) / ranks + below(3);
  for (std::int64_t p = 0; p < per_rank * ranks; ++p)
    shape.slots.push_back(p < shape.experts ? static_cast<std::int32_t>(p)
                          : below(3) == 0   ? -1
                                            : static_cast<std::int32_t>(below(shape.experts)));
  std::shuffle(shape.slots.begin(), shape.slots.end(), random);
  shape.options.alignment = below(2) == 0 ? 1 : 1 + below(16);
  if (below(3) == 0) shape.options.capacity = 1 + below(9);
  return shape;
}

// A choice of a token, and where it is sent.
struct Choice {
  std::int64_t rank, token;
  std::int32_t slot;  // -1: dropped
};

// One step of all ranks, computed in one process.
struct Reference {
  std::vector<std::vector<std::int32_t>> ids;        // by rank
  std::vector<std::vector<float>> weights;           // by rank
  std::vector<std::vector<Choice>> choices;          // by rank, in order
  std::vector<std::vector<const Choice*>> arrivals;  // by slot: by rank, then in order
};

inline Reference make_reference(const Shape& shape, std::mt19937& random) {
  const auto n = static_cast<std::int64_t>(shape.tokens.size());
  std::vector<std::vector<std::int32_t>> slots_of(at(shape.experts));
  for (std::size_t p = 0; p < shape.slots.size(); ++p)
    if (shape.slots[p] >= 0) slots_of[at(shape.slots[p])].push_back(static_cast<std::int32_t>(p));
  Reference reference;
  reference.choices.resize(at(n));
  reference.arrivals.resize(shape.slots.size());
  for (std::int64_t r = 0; r < n; ++r) {
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
    std::vector<std::int64_t> chosen(at(shape.experts)), filled(shape.slots.size());
    for (std::int64_t i = 0; i < shape.tokens[at(r)] * shape.top_k; ++i) {
      ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(shape.experts + 1)) -
                    1);
      weights.push_back(static_cast<float>(random() % 64) / 32.0F - 0.5F);
      Choice choice{r, i / shape.top_k, -1};
      if (ids.back() >= 0) {
        const auto& replicas = slots_of[at(ids.back())];
        choice.slot = replicas[at(r + chosen[at(ids.back())]++) % replicas.size()];
        if (shape.options.capacity && ++filled[at(choice.slot)] > *shape.options.capacity)
          choice.slot = -1;
      }
      reference.choices[at(r)].push_back(choice);
    }
    reference.ids.push_back(std::move(ids));
    reference.weights.push_back(std::move(weights));
  }
  for (const auto& of_rank : reference.choices)
    for (const Choice& choice : of_rank)
      if (choice.slot >= 0) reference.arrivals[at(choice.slot)].push_back(&choice);
  return reference;
}

template <class T>
T token_value(std::int64_t rank, std::int64_t token, std::int64_t h) {
  return static_cast<T>(static_cast<float>((rank * 131 + token * 17 + h * 7) % 97 - 40) / 8.0F);
}

// The result of an expert for a value: each logical expert has another factor.
template <class T>
T expert_value(T value, std::int32_t logical) {
  return static_cast<T>(static_cast<float>(value) * static_cast<float>(1 + logical % 3));
}

template <class T>
bool equal_as_float(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(
      a, b, [](T x, T y) { return static_cast<float>(x) == static_cast<float>(y); });
}

// One step of one rank, compared with the reference. Platform gives the memory: host or device.
template <class T, class Platform>
class StepTest {
 public:
  StepTest(GroupCoordinator& ep, const Shape& shape, const Reference& reference,
           const Platform& platform)
      : shape_{shape},
        reference_{reference},
        platform_{platform},
        n_{ep.size()},
        self_{ep.rank_in_group().value()},
        local_{static_cast<std::int64_t>(shape.slots.size()) / ep.size()},
        tokens_{shape.tokens[at(self_)]},
        dispatcher_{ep, ExpertMap{shape.slots, shape.experts, n_}, shape.options},
        route_{platform.route(dispatcher_, reference.ids[at(self_)], shape.top_k)} {}

  void run() {
    CHECK(route_.tokens() == tokens_);
    CHECK(route_.dropped() == std::ranges::count_if(reference_.choices[at(self_)],
                                                    [](const Choice& c) { return c.slot < 0; }));
    check_blocks();
    std::vector<T> rows = check_dispatch();
    check_dispatch_choices();
    check_collect_choices();
    const std::int64_t h = shape_.hidden;
    for (std::int64_t e = 0; e < local_; ++e)
      for (std::int64_t i = route_.offsets()[at(e)] * h; i < route_.offsets()[at(e + 1)] * h; ++i)
        rows[at(i)] = expert_value(rows[at(i)], route_.experts()[at(e)]);
    for (int again = 0; again < 2; ++again) check_combine(rows);  // a route can be used again
  }

 private:
  using Memory = typename Platform::template Memory<T>;

  [[nodiscard]] const std::vector<const Choice*>& arrivals(std::int64_t e) const {
    return reference_.arrivals[at(self_ * local_ + e)];
  }

  // The row of the a-th arrival in local slot e. With a capacity, each sending rank has its
  // own rows.
  [[nodiscard]] std::int64_t row_of(std::int64_t e, std::size_t a) const {
    const auto& all = arrivals(e);
    const std::int64_t first = route_.offsets()[at(e)];
    if (!shape_.options.capacity) return first + static_cast<std::int64_t>(a);
    std::int64_t nth = 0;
    while (static_cast<std::int64_t>(a) > nth && all[a - at(nth) - 1]->rank == all[a]->rank) ++nth;
    return first + all[a]->rank * *shape_.options.capacity + nth;
  }

  void check_blocks() const {
    for (std::int64_t e = 0; e < local_; ++e) {
      CHECK(route_.offsets()[at(e)] % shape_.options.alignment == 0);
      CHECK(route_.experts()[at(e)] == shape_.slots[at(self_ * local_ + e)]);
      CHECK(route_.counts()[at(e)] == (shape_.options.capacity
                                           ? n_ * *shape_.options.capacity
                                           : static_cast<std::int64_t>(arrivals(e).size())));
    }
  }

  std::vector<T> check_dispatch() {
    const std::int64_t h = shape_.hidden;
    std::vector<T> in;
    for (std::int64_t t = 0; t < tokens_; ++t)
      for (std::int64_t i = 0; i < h; ++i) in.push_back(token_value<T>(self_, t, i));
    const auto& tokens_there = platform_.put(in);
    auto rows_there = Memory(at(route_.rows() * h));
    dispatcher_.dispatch(route_, platform_.view(tokens_there), platform_.view(rows_there),
                         platform_.stream());
    std::vector<T> rows = platform_.get(rows_there);

    std::vector<T> expected(rows.size(), T{0});
    for (std::int64_t e = 0; e < local_; ++e)
      for (std::size_t a = 0; a < arrivals(e).size(); ++a)
        for (std::int64_t i = 0; i < h; ++i)
          expected[at(row_of(e, a) * h + i)] =
              token_value<T>(arrivals(e)[a]->rank, arrivals(e)[a]->token, i);
    CHECK(equal_as_float(rows, expected));
    return rows;
  }

  // A row per choice, as in the backward pass, goes where the token of the choice went. Here it is
  // the number of the choice.
  void check_dispatch_choices() {
    std::vector<T> numbered, expected(at(route_.rows()), T{0});
    for (std::int64_t i = 0; i < tokens_ * shape_.top_k; ++i)
      numbered.push_back(token_value<T>(self_, i, 3));
    for (std::int64_t e = 0; e < local_; ++e)
      for (std::size_t a = 0; a < arrivals(e).size(); ++a) {
        const std::int64_t rank = arrivals(e)[a]->rank;
        const std::int64_t choice = arrivals(e)[a] - reference_.choices[at(rank)].data();
        expected[at(row_of(e, a))] = token_value<T>(rank, choice, 3);
      }
    const auto& numbered_there = platform_.put(numbered);
    auto numbers_there = Memory(at(route_.rows()));
    dispatcher_.dispatch_choices(route_, platform_.view(numbered_there),
                                 platform_.view(numbers_there), platform_.stream());
    CHECK(equal_as_float(platform_.get(numbers_there), expected));
  }

  // Each choice gets back the row that its expert received, and a choice that is not sent gets
  // zeros.
  void check_collect_choices() {
    const std::int64_t h = shape_.hidden;
    std::vector<T> sent, expected;
    for (std::int64_t i = 0; i < tokens_ * shape_.top_k; ++i)
      for (std::int64_t c = 0; c < h; ++c) {
        sent.push_back(token_value<T>(self_ + 1, i, c));
        expected.push_back(reference_.choices[at(self_)][at(i)].slot < 0 ? T{0} : sent.back());
      }
    const auto& sent_there = platform_.put(sent);
    auto rows_there = Memory(at(route_.rows() * h));
    const std::vector<T> other_values(sent.size(), token_value<T>(1, 2, 3));
    auto returned_there = platform_.put(other_values);
    dispatcher_.dispatch_choices(route_, platform_.view(sent_there), platform_.view(rows_there),
                                 platform_.stream());
    dispatcher_.collect_choices(route_, platform_.view(rows_there), platform_.view(returned_there),
                                platform_.stream());
    CHECK(equal_as_float(platform_.get(returned_there), expected));
  }

  void check_combine(const std::vector<T>& rows) {
    using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const std::int64_t h = shape_.hidden, k = shape_.top_k;
    const auto& weights = reference_.weights[at(self_)];
    const auto& results_there = platform_.put(rows);
    const auto& weights_there = platform_.put(weights);
    auto out_there = Memory(at(tokens_ * h));
    dispatcher_.combine(route_, platform_.view(results_there), platform_.view(weights_there),
                        platform_.view(out_there), platform_.stream());
    const std::vector<T> out = platform_.get(out_there);
    std::vector<T> expected;
    for (std::int64_t t = 0; t < tokens_; ++t)
      for (std::int64_t i = 0; i < h; ++i) {
        Sum sum = 0;
        for (std::int64_t j = t * k; j < (t + 1) * k; ++j) {
          const Choice& choice = reference_.choices[at(self_)][at(j)];
          if (choice.slot < 0) continue;
          sum += static_cast<Sum>(weights[at(j)]) *
                 static_cast<Sum>(
                     expert_value(token_value<T>(self_, t, i), shape_.slots[at(choice.slot)]));
        }
        expected.push_back(static_cast<T>(sum));
      }
    CHECK(std::ranges::equal(out, expected,
                             [](T x, T y) { return static_cast<Sum>(x) == static_cast<Sum>(y); }));
  }

  const Shape& shape_;
  const Reference& reference_;
  const Platform& platform_;
  std::int64_t n_, self_, local_, tokens_;
  ExpertDispatcher dispatcher_;
  ExpertRoute route_;
};

template <class T, class Platform>
void test_step(GroupCoordinator& ep, const Shape& shape, std::mt19937& random,
               const Platform& platform) {
  const Reference reference = make_reference(shape, random);
  CAPTURE(shape.hidden);
  CAPTURE(shape.top_k);
  CAPTURE(shape.experts);
  StepTest<T, Platform>{ep, shape, reference, platform}.run();
}

}  // namespace experts_reference
