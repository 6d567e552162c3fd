// SPDX-License-Identifier: BSD-3-Clause
// One rank uses another form of the same call. Some of these work; no form may be silently wrong.
#include "faults/operations.hpp"

namespace faults {
namespace {

void check_sum(const Cell& c, std::span<const float> v, float expected) {
  for (const float value : v)
    if (value != expected) return c.wrong("fault");
}

void mixed_async(Cell& c, bool is_async_here) {
  const auto v = c.memory<float>(c.floats());
  c.expect("tp.all_reduce");
  if (is_async_here)
    c.group->all_reduce_async(v).wait();
  else
    c.group->all_reduce(v);
  check_sum(c, v, static_cast<float>(c.size));
}
void mixed_async_broadcast(Cell& c, bool is_async_here) {
  const auto v = c.memory<float>(c.floats(), c.rank == 0 ? 3.0F : 0.0F);
  c.expect("tp.broadcast");
  if (is_async_here)
    c.group->broadcast_async(v, first_member).wait();
  else
    c.group->broadcast(v, first_member);
  check_sum(c, v, 3);
}
void mixed_async_blocks(Cell& c, bool is_async_here) {
  const std::vector<std::int64_t> sizes(members(c), static_cast<std::int64_t>(c.block()));
  const auto in = c.memory<float>(c.block(), 3), out = c.memory<float>(c.block() * members(c));
  c.expect("tp.all_gather");
  if (is_async_here)
    c.group->all_gather_v_async(in, out, sizes).wait();
  else
    c.group->all_gather_v(in, out, sizes);
  check_sum(c, out, 3);
}

void in_place_all_reduce(Cell& c) {
  const auto in = c.memory<float>(c.floats()), out = c.memory<float>(c.floats());
  c.expect("tp.all_reduce");
  if (c.is_odd())
    c.group->all_reduce(out);
  else
    c.group->all_reduce(in, out);
  check_sum(c, out, static_cast<float>(c.size));
}
void in_place_all_gather(Cell& c) {
  const std::size_t n = c.block();
  const auto in = c.memory<float>(n), out = c.memory<float>(n * members(c));
  c.expect("tp.all_gather");
  if (c.is_odd())
    c.group->all_gather(out.subspan(n * static_cast<std::size_t>(c.rank), n), out);
  else
    c.group->all_gather(in, out);
  check_sum(c, out, 1);
}

std::vector<std::int64_t> shape_of(const Cell& c) {
  return {2, static_cast<std::int64_t>(c.block() / 2)};
}
// The members' blocks have the same bytes in both forms, and each rank places them as it wants.
void axis_of_all_gather(Cell& c) {
  const std::size_t n = c.block() / 2 * 2;
  const auto in = c.memory<float>(n), out = c.memory<float>(n * members(c));
  c.expect("tp.all_gather");
  if (c.is_odd())
    c.group->all_gather(in, out, Axis{shape_of(c), 1});
  else
    c.group->all_gather(in, out);
  check_sum(c, out, 1);
}
void axis_of_reduce_scatter(Cell& c) {
  const std::size_t n = c.block() / 2 * 2;
  const auto in = c.memory<float>(n * members(c)), out = c.memory<float>(n);
  c.expect("tp.reduce_scatter");
  if (c.is_odd())
    c.group->reduce_scatter(in, out, Axis{shape_of(c), 1});
  else
    c.group->reduce_scatter(in, out);
}

void symmetric_memory(Cell& c, bool is_symmetric_here) {
  const auto symmetric = c.mesh->allocate_symmetric<float>(c.floats(), {"tp"});
  for (float& value : symmetric) value = 1;
  const std::span<float> ordinary = c.memory<float>(c.floats());
  c.expect("tp.all_reduce");
  if (is_symmetric_here)
    c.group->all_reduce(symmetric);
  else
    c.group->all_reduce(ordinary);
  check_sum(c, is_symmetric_here ? std::span<float>{symmetric} : ordinary,
            static_cast<float>(c.size));
}
void symmetric_sizes(Cell& c) {
  c.expect({std::to_string(c.bytes + 4)}, {std::to_string(c.bytes)});
  (void)c.mesh->allocate_symmetric<float>(c.floats() + (c.is_odd() ? 1 : 0), {"tp"});
}

}  // namespace

Kinds forms() {
  constexpr auto either = Expected::works_or_named;
  return {
      {.name = "async_here",
       .expected = either,
       .fault = [](Cell& c) { mixed_async(c, c.is_odd()); }},
      {.name = "async_elsewhere",
       .expected = either,
       .fault = [](Cell& c) { mixed_async(c, !c.is_odd()); }},
      {.name = "async_broadcast",
       .expected = either,
       .fault = [](Cell& c) { mixed_async_broadcast(c, c.is_odd()); }},
      {.name = "async_all_gather_v",
       .expected = either,
       .fault = [](Cell& c) { mixed_async_blocks(c, c.is_odd()); }},
      {.name = "in_place_all_reduce", .expected = either, .fault = in_place_all_reduce},
      {.name = "in_place_all_gather", .expected = either, .fault = in_place_all_gather},
      {.name = "axis_all_gather", .expected = either, .fault = axis_of_all_gather},
      {.name = "axis_reduce_scatter", .fault = axis_of_reduce_scatter},
      {.name = "symmetric_here",
       .expected = either,
       .fault = [](Cell& c) { symmetric_memory(c, c.is_odd()); }},
      {.name = "symmetric_elsewhere",
       .expected = either,
       .fault = [](Cell& c) { symmetric_memory(c, !c.is_odd()); }},
      {.name = "symmetric_sizes", .fault = symmetric_sizes},
  };
}

}  // namespace faults
