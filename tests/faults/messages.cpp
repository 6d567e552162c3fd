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
      {.name = "send_other_tag",
       .expected = Expected::told,
       .fault = with_another_tag,
       .needs_check = true},
  };
}

}  // namespace faults
