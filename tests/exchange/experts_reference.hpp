// Random steps of expert dispatch, and what one process makes of them. Used on host and on device
// memory.
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

// The same on every rank of a group; the numbers of tokens are all ranks'.
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
  if (below(4) == 0) shape.hidden = 1031;  // more than a stretch of the sum
  shape.experts = 1 + below(12);
  shape.top_k = 1 + below(4);
  // Every expert has a slot; what is left over are copies and empty slots.
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

// One step of all ranks, as if in one process: what each does with its choices.
struct Choice {
  std::int64_t rank, token;
  std::int32_t slot;  // -1: dropped
};

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

// What the expert of a slot makes of a value: another factor for each logical expert.
template <class T>
T expert_value(T value, std::int32_t logical) {
  return static_cast<T>(static_cast<float>(value) * static_cast<float>(1 + logical % 3));
}

template <class T, class Ground>
void test_step(GroupCoordinator& ep, const Shape& shape, std::mt19937& random,
               const Ground& ground) {
  const std::int64_t n = ep.size(), self = ep.rank_in_group().value(), h = shape.hidden;
  const std::int64_t k = shape.top_k, tokens = shape.tokens[at(self)];
  const Reference reference = make_reference(shape, random);
  CAPTURE(h);
  CAPTURE(k);
  CAPTURE(shape.experts);
  ExpertDispatcher dispatcher{ep, ExpertMap{shape.slots, shape.experts, n}, shape.options};
  const auto& ids = reference.ids[at(self)];
  const ExpertRoute route = ground.route(dispatcher, ids, k);
  CHECK(route.tokens() == tokens);
  CHECK(route.dropped() == std::ranges::count_if(reference.choices[at(self)],
                                                 [](const Choice& c) { return c.slot < 0; }));

  std::vector<T> in;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t i = 0; i < h; ++i) in.push_back(token_value<T>(self, t, i));
  const auto& tokens_there = ground.put(in);
  auto rows_there = typename Ground::template Memory<T>(at(route.rows() * h));
  dispatcher.dispatch(route, ground.view(tokens_there), ground.view(rows_there), ground.stream());
  std::vector<T> rows = ground.get(rows_there);

  // The blocks, row by row.
  const std::int64_t local = static_cast<std::int64_t>(shape.slots.size()) / n;
  // The row of the slot's a-th arrival: with a capacity each rank has rows of its own.
  const auto row_of = [&](std::int64_t e, std::size_t a) {
    const auto& arrivals = reference.arrivals[at(self * local + e)];
    const std::int64_t first = route.offsets()[at(e)];
    if (!shape.options.capacity) return first + static_cast<std::int64_t>(a);
    std::int64_t nth = 0;
    while (static_cast<std::int64_t>(a) > nth &&
           arrivals[a - at(nth) - 1]->rank == arrivals[a]->rank)
      ++nth;
    return first + arrivals[a]->rank * *shape.options.capacity + nth;
  };
  std::vector<T> expected(rows.size(), T{0});
  for (std::int64_t e = 0; e < local; ++e) {
    const auto& arrivals = reference.arrivals[at(self * local + e)];
    CHECK(route.offsets()[at(e)] % shape.options.alignment == 0);
    CHECK(route.experts()[at(e)] == shape.slots[at(self * local + e)]);
    CHECK(route.counts()[at(e)] == (shape.options.capacity
                                        ? n * *shape.options.capacity
                                        : static_cast<std::int64_t>(arrivals.size())));
    for (std::size_t a = 0; a < arrivals.size(); ++a) {
      const std::int64_t rank = arrivals[a]->rank, row = row_of(e, a);
      for (std::int64_t i = 0; i < h; ++i)
        expected[at(row * h + i)] = token_value<T>(rank, arrivals[a]->token, i);
    }
  }
  CHECK(std::ranges::equal(
      rows, expected, [](T a, T b) { return static_cast<float>(a) == static_cast<float>(b); }));

  // A row per choice comes where the choice's token came: here its number, as the backward pass
  // needs it.
  std::vector<T> numbered, numbers_expected(at(route.rows()), T{0});
  for (std::int64_t i = 0; i < tokens * k; ++i) numbered.push_back(token_value<T>(self, i, 3));
  for (std::int64_t e = 0; e < local; ++e) {
    const auto& arrivals = reference.arrivals[at(self * local + e)];
    for (std::size_t a = 0; a < arrivals.size(); ++a) {
      const std::int64_t rank = arrivals[a]->rank, row = row_of(e, a);
      const std::int64_t choice = arrivals[a] - reference.choices[at(rank)].data();
      numbers_expected[at(row)] = token_value<T>(rank, choice, 3);
    }
  }
  const auto& numbered_there = ground.put(numbered);
  auto numbers_there = typename Ground::template Memory<T>(at(route.rows()));
  dispatcher.dispatch_choices(route, ground.view(numbered_there), ground.view(numbers_there),
                              ground.stream());
  const std::vector<T> numbers = ground.get(numbers_there);
  CHECK(std::ranges::equal(numbers, numbers_expected, [](T a, T b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }));

  for (std::int64_t e = 0; e < local; ++e)
    for (std::int64_t i = route.offsets()[at(e)] * h; i < route.offsets()[at(e + 1)] * h; ++i)
      rows[at(i)] = expert_value(rows[at(i)], route.experts()[at(e)]);
  // Twice: a route can be used again.
  for (int again = 0; again < 2; ++again) {
    const auto& results_there = ground.put(rows);
    const auto& weights_there = ground.put(reference.weights[at(self)]);
    auto out_there = typename Ground::template Memory<T>(at(tokens * h));
    dispatcher.combine(route, ground.view(results_there), ground.view(weights_there),
                       ground.view(out_there), ground.stream());
    const std::vector<T> out = ground.get(out_there);
    bool agrees = true;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::int64_t i = 0; i < h; ++i) {
        using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
        Sum sum = 0;
        for (std::int64_t j = t * k; j < (t + 1) * k; ++j) {
          const Choice& choice = reference.choices[at(self)][at(j)];
          if (choice.slot < 0) continue;
          sum += static_cast<Sum>(reference.weights[at(self)][at(j)]) *
                 static_cast<Sum>(
                     expert_value(token_value<T>(self, t, i), shape.slots[at(choice.slot)]));
        }
        agrees =
            agrees && static_cast<Sum>(out[at(t * h + i)]) == static_cast<Sum>(static_cast<T>(sum));
      }
    CHECK(agrees);
  }
}

}  // namespace experts_reference
