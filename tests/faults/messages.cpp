// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members that do not fit their receiver.
#include "faults/operations.hpp"

namespace faults {
namespace {

// The odd rank sends to the first member; the types and counts of the two ends differ.
template <class Received>
void differing(Cell& c, std::size_t received) {
  c.expect({"tp.send"}, {"tp.recv"});
  if (c.is_odd()) c.group->send(c.memory<float>(c.floats()), 0);
  if (c.rank == 0) c.group->recv(c.memory<Received>(received), c.odd);
}
void instead_of_all_reduce(Cell& c) {
  c.expect({"tp.send"}, {"tp.all_reduce("});
  c.is_odd() ? c.group->send(c.memory<float>(c.floats()), 0) : all_reduce(c, c.floats());
}
void receive_instead_of_all_reduce(Cell& c) {
  c.expect({"tp.recv"}, {"tp.all_reduce("});
  c.is_odd() ? c.group->recv(c.memory<float>(c.floats()), 0) : all_reduce(c, c.floats());
}
void with_another_tag(Cell& c) {
  c.expect({"tp.send"}, {"tp.recv"});
  if (c.is_odd()) c.group->send(c.memory<float>(c.floats()), 0, 1);
  if (c.rank == 0) c.group->recv(c.memory<float>(c.floats()), c.odd, 2);
}

void one_too_many(Cell& c, GroupCoordinator& group) {
  c.expect({"send", "tag 3"}, {});
  for (int i = 0; i < c.pick(3, 2); ++i) {
    if (c.is_odd()) group.send(c.memory<float>(4), 0, 3);
    if (c.rank == 0) group.recv(c.memory<float>(4), c.odd, 3);
  }
}
void one_too_many_in_group(Cell& c) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < c.size; ++rank) ranks.emplace_back(rank);
  const auto group = c.mesh->new_group(ranks, "pool");
  one_too_many(c, *group);
  c.mesh->close(*group);
}
// A receive that is cancelled is no mistake.
void cancelled_receive(Cell& c) {
  if (c.rank == 0) (void)c.group->recv_async(c.memory<float>(4), c.odd, 3).cancel();
  const auto pending = c.memory<float>(4);
  if (c.rank == 0) (void)c.group->recv_async(pending, c.odd, 4);
}

}  // namespace

Kinds messages() {
  constexpr auto pair = Expected::pair;
  return {
      {.name = "send_as_double",
       .expected = pair,
       .fault = [](Cell& c) { differing<double>(c, c.floats() / 2); },
       .needs_check = true},
      {.name = "send_as_int32",
       .expected = pair,
       .fault = [](Cell& c) { differing<std::int32_t>(c, c.floats()); },
       .needs_check = true},
      {.name = "send_too_long",
       .expected = pair,
       .fault = [](Cell& c) { differing<float>(c, c.floats() - 1); },
       .needs_check = true},
      {.name = "send_too_short",
       .expected = pair,
       .fault = [](Cell& c) { differing<float>(c, c.floats() + 1); },
       .needs_check = true},
      {.name = "send_all_reduce",
       .expected = Expected::told,
       .fault = instead_of_all_reduce,
       .needs_check = true},
      {.name = "recv_all_reduce",
       .expected = Expected::told,
       .fault = receive_instead_of_all_reduce,
       .needs_check = true},
      {.name = "send_extra",
       .expected = Expected::told,
       .fault = [](Cell& c) { one_too_many(c, *c.group); },
       .has_one_size = true},
      {.name = "send_extra_group",
       .expected = Expected::told,
       .fault = one_too_many_in_group,
       .has_one_size = true},
      {.name = "recv_cancelled",
       .expected = Expected::works,
       .fault = cancelled_receive,
       .has_one_size = true},
      {.name = "send_other_tag",
       .expected = Expected::told,
       .fault = with_another_tag,
       .needs_check = true},
  };
}

}  // namespace faults
