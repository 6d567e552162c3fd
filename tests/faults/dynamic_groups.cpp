// SPDX-License-Identifier: BSD-3-Clause
// Mistakes with groups that are made after the mesh.
#include "faults/operations.hpp"

namespace faults {
namespace {

std::vector<Rank> everybody(const Cell& c) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < c.size; ++rank) ranks.emplace_back(rank);
  return ranks;
}

// The odd rank lists the ranks in the other order, or only the first and itself.
void with_other_lists(Cell& c) {
  std::vector<Rank> ranks = everybody(c);
  c.expect({}, {});
  if (c.is_odd() && c.size == 2) ranks = {1, 0};
  if (c.is_odd() && c.size > 2) ranks = {0, c.rank};
  c.mesh->new_group(ranks)->barrier();
}
void skips_creation(Cell& c) {
  c.expect({"tp.all_reduce"}, {"group"});
  if (!c.is_odd()) (void)c.mesh->new_group(everybody(c));
}
void closes_early(Cell& c) {
  const auto group = c.mesh->new_group(everybody(c), "pool");
  c.expect({"close of pool"}, {"pool.all_reduce"});
  c.is_odd() ? c.mesh->close(*group) : c.good(*group, c.floats(), 5);
}
void with_another_count(Cell& c) {
  const auto group = c.mesh->new_group(everybody(c), "pool");
  const std::size_t n = c.floats();
  c.expect({"pool.all_reduce(", elements(n - 1)}, {"pool.all_reduce(", elements(n)});
  group->all_reduce(c.memory<float>(c.pick(n - 1, n)));
}
void not_called(Cell& c) {
  const auto group = c.mesh->new_group(everybody(c), "pool");
  c.expect({"pool"}, {"pool"});
  if (!c.is_odd()) c.good(*group, c.floats(), 5);
}
void with_another_type(Cell& c) {
  const auto group = c.mesh->new_group(everybody(c), "pool");
  const std::size_t n = c.floats();
  c.expect({"pool.all_reduce(", "int32"}, {"pool.all_reduce(", "float32"});
  c.is_odd() ? group->all_reduce(c.memory<std::int32_t>(n)) : group->all_reduce(c.memory<float>(n));
}

void with_another_name(Cell& c) {
  c.expect({"new_group", "left"}, {"new_group", "right"});
  (void)c.mesh->new_group(everybody(c), c.pick("left", "right"));
}
void of_an_equal_group(Cell& c) {
  const auto left = c.mesh->new_group(everybody(c), "left");
  const auto right = c.mesh->new_group(everybody(c), "right");
  c.expect({"left.barrier"}, {"right.barrier"});
  c.pick(left, right)->barrier();
}

}  // namespace

Kinds dynamic_groups() {
  return {
      {.name = "new_group_lists", .fault = with_other_lists, .has_one_size = true},
      {.name = "new_group_names", .fault = with_another_name, .has_one_size = true},
      {.name = "group_equal",
       .expected = Expected::told,
       .fault = of_an_equal_group,
       .has_one_size = true},
      {.name = "new_group_skipped", .expected = Expected::told, .fault = skips_creation},
      {.name = "group_closed_early", .expected = Expected::told, .fault = closes_early},
      {.name = "group_count", .fault = with_another_count},
      {.name = "group_type", .fault = with_another_type},
      {.name = "group_skip", .expected = Expected::told, .fault = not_called},
  };
}

}  // namespace faults
