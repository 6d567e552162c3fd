// SPDX-License-Identifier: BSD-3-Clause
// One rank skips a call, makes one more, or makes two calls in the other order.
#include <chrono>

#include "faults/operations.hpp"

namespace faults {
namespace {

void skips(Cell& c, std::size_t count) {
  c.expect("tp");
  if (!c.is_odd()) c.good(count, 5);
}
void repeats(Cell& c, std::size_t count) {
  c.expect("tp");
  c.good(count, 5);
  if (c.is_odd()) c.good(count, 5);
}

// Makes two calls; the ranks for which `is_swapped` holds make the second one first.
template <class First, class Second>
void in_turn(bool is_swapped, First&& first, Second&& second) {
  if (is_swapped) second();
  first();
  if (!is_swapped) second();
}

// Each rank of the square waits for the next one around it.
void cycle(Cell& c) {
  c.expect({"dp.all_reduce"}, {"tp.all_reduce"});
  in_turn(
      c.rank == 0 || c.rank == 3, [&] { c.good((*c.mesh)["tp"], c.floats(), 5); },
      [&] { c.good((*c.mesh)["dp"], c.floats(), 6); });
}
// A single rank in the other order is not a deadlock: its peers come to it in turn.
void one_rank_swaps(Cell& c) {
  in_turn(
      c.is_odd(), [&] { c.good((*c.mesh)["tp"], c.floats(), 5); },
      [&] { c.good((*c.mesh)["dp"], c.floats(), 6); });
}

void equal_groups(Cell& c, std::size_t more) {
  c.expect({"ep.all_reduce("}, {"tp.all_reduce("});
  in_turn(
      c.is_odd(), [&] { c.good((*c.mesh)["tp"], c.floats(), 5); },
      [&] { c.good((*c.mesh)["ep"], c.floats() + more, 6); });
}
void duplicates(Cell& c) {
  c.expect({"tp[x].all_reduce"}, {"tp.all_reduce"});
  in_turn(
      c.is_odd(), [&] { c.good((*c.mesh)["tp"], c.floats(), 5); },
      [&] { c.good(c.mesh->duplicate("tp", "x"), c.floats(), 6); });
}

void two_meshes(Cell& c) {
  Mesh second{c.world, "tp=auto", c.options};
  c.expect({"all_reduce", elements(c.floats() + 1)}, {"all_reduce", elements(c.floats())});
  in_turn(
      c.is_odd(), [&] { c.good(c.floats(), 5); }, [&] { c.good(second["tp"], c.floats() + 1, 6); });
  second.close();
}
void meshes_closed(Cell& c) {
  Mesh second{c.world, "tp=auto", c.options}, third{c.world, "dp=auto", c.options};
  c.expect({"close"}, {"close"});
  in_turn(
      c.is_odd(), [&] { second.close(); }, [&] { third.close(); });
}
void meshes_opened(Cell& c) {
  c.expect({"dp=auto"}, {"tp=auto"});
  Mesh second{c.world, c.pick("dp=auto", "tp=auto"), c.options};
  Mesh third{c.world, c.pick("tp=auto", "dp=auto"), c.options};
}
void early_close(Cell& c) {
  c.expect({"close"}, {"tp.all_reduce(", elements(c.floats())});
  c.is_odd() ? c.mesh->close() : c.good(c.floats(), 5);
}
void messages_and_collective(Cell& c) {
  Work kept = c.group->barrier_async();
  c.expect({"tp.all_reduce("}, {"tp.barrier"});
  c.is_odd() ? c.good(c.floats(), 5) : c.group->barrier();
  kept.wait();
}

// The ranks between the first and the odd one close the mesh, and learn soon that it cannot end
// well.
void others_close(Cell& c) {
  c.expect({"close of tp after 2 calls"}, {"call 3"});
  if (c.is_odd()) return c.group->barrier();
  if (c.rank == 0) return all_reduce(c, c.floats());
  const auto begin = std::chrono::steady_clock::now();
  try {
    c.mesh->close();
  } catch (const Error&) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds{1 + 3}) c.wrong("close");
    throw;
  }
}

}  // namespace

Kinds orders() {
  constexpr auto at_close = Expected::at_close;
  constexpr auto told = Expected::told;
  return {
      {.name = "skip_same",
       .expected = at_close,
       .fault = [](Cell& c) { skips(c, c.good_count()); }},
      {.name = "skip_other", .fault = [](Cell& c) { skips(c, c.floats()); }},
      {.name = "extra_same",
       .expected = at_close,
       .fault = [](Cell& c) { repeats(c, c.good_count()); }},
      {.name = "extra_other", .fault = [](Cell& c) { repeats(c, c.floats()); }},
      {.name = "order_cycle",
       .expected = told,
       .fault = cycle,
       .mesh = "dp=2,tp=2",
       .min_ranks = 4},
      {.name = "order_one_rank",
       .expected = Expected::works,
       .fault = one_rank_swaps,
       .mesh = "dp=2,tp=2",
       .min_ranks = 4},
      {.name = "order_equal_groups",
       .fault = [](Cell& c) { equal_groups(c, 1); },
       .mesh = "tp=auto | ep=auto"},
      {.name = "order_equal_groups_same",
       .fault = [](Cell& c) { equal_groups(c, 0); },
       .mesh = "tp=auto | ep=auto"},
      {.name = "order_duplicate", .expected = told, .fault = duplicates},
      {.name = "order_two_meshes", .expected = told, .fault = two_meshes},
      {.name = "order_close", .expected = told, .fault = meshes_closed, .has_one_size = true},
      {.name = "order_open", .fault = meshes_opened, .has_one_size = true},
      {.name = "early_close_of_others",
       .expected = Expected::told,
       .fault = others_close,
       .min_ranks = 4},
      {.name = "early_close", .fault = early_close},
      {.name = "behind_async", .fault = messages_and_collective},
  };
}

}  // namespace faults
