// SPDX-License-Identifier: BSD-3-Clause
// One rank passes a span that cannot be memory, or an empty one.
#include "faults/operations.hpp"

namespace faults {
namespace {

constexpr std::size_t huge = std::size_t{1} << 62;  // its bytes wrap to 0

std::span<float> null_span(std::size_t count) { return {static_cast<float*>(nullptr), count}; }

template <class Bad, class Good>
void pass(Cell& c, const char* operation, Bad&& bad, Good&& good) {
  c.expect(std::string{"tp."} + operation);
  c.is_odd() ? bad() : good();
}

void null_all_reduce(Cell& c) {
  pass(
      c, "all_reduce", [&] { c.group->all_reduce(null_span(c.floats())); },
      [&] { all_reduce(c, c.floats()); });
}
void null_broadcast(Cell& c) {
  pass(
      c, "broadcast", [&] { c.group->broadcast(null_span(c.floats()), first_member); },
      [&] { broadcast(c, c.floats()); });
}
void null_all_gather(Cell& c) {
  pass(
      c, "all_gather",
      [&] { c.group->all_gather(c.memory<float>(c.block()), null_span(c.block() * members(c))); },
      [&] { all_gather(c, c.block()); });
}
void huge_all_reduce(Cell& c) {
  pass(
      c, "all_reduce",
      [&] {
        c.group->all_reduce(std::span<float>{c.memory<float>(1).data(), huge});
      },
      [&] { all_reduce(c, c.floats()); });
}
void huge_broadcast(Cell& c) {
  pass(
      c, "broadcast",
      [&] {
        c.group->broadcast(std::span<float>{c.memory<float>(1).data(), huge}, first_member);
      },
      [&] { broadcast(c, c.floats()); });
}
void huge_reduce_scatter(Cell& c) {
  const auto at = c.memory<float>(1).data();
  pass(
      c, "reduce_scatter",
      [&] {
        c.group->reduce_scatter(std::span<float>{at, huge * members(c)},
                                std::span<float>{at, huge});
      },
      [&] { reduce_scatter(c, c.block()); });
}
void huge_function(Cell& c) {
  const auto added = [](float a, float b) { return a + b; };
  const std::span<float> all{c.memory<float>(1).data(), huge};
  const auto v = c.memory<float>(c.floats());
  pass(
      c, "all_reduce", [&] { c.group->all_reduce(all, added); },
      [&] { c.group->all_reduce(v, added); });
}

// Neither a member without elements nor one that sends nothing may be forgotten by the comparison.
template <class Run>
Kind empty(const char* operation, Run run) {
  return {.name = std::string{"empty_"} + operation, .fault = [operation, run](Cell& c) {
            const std::string name = std::string{"tp."} + operation + "(";
            c.expect(name);
            run(c, c.pick(std::size_t{0}, c.block()));
          }};
}

}  // namespace

Kinds spans() {
  constexpr auto usage = Expected::usage;
  return {
      {.name = "null_all_reduce", .expected = usage, .fault = null_all_reduce},
      {.name = "null_broadcast", .expected = usage, .fault = null_broadcast},
      {.name = "null_all_gather", .expected = usage, .fault = null_all_gather},
      {.name = "huge_all_reduce", .expected = usage, .fault = huge_all_reduce},
      {.name = "huge_broadcast", .expected = usage, .fault = huge_broadcast},
      {.name = "huge_reduce_scatter", .expected = usage, .fault = huge_reduce_scatter},
      {.name = "huge_function", .expected = usage, .fault = huge_function},
      empty("all_reduce", [](Cell& c, std::size_t n) { all_reduce(c, n); }),
      empty("broadcast", [](Cell& c, std::size_t n) { broadcast(c, n); }),
      empty("reduce", [](Cell& c, std::size_t n) { reduce(c, n); }),
      empty("all_gather", [](Cell& c, std::size_t n) { all_gather(c, n); }),
      empty("all_to_all", [](Cell& c, std::size_t n) { all_to_all(c, n); }),
      {.name = "empty_everywhere",
       .expected = Expected::works,
       .fault = [](Cell& c) { all_reduce(c, 0); },
       .has_one_size = true},
  };
}

}  // namespace faults
