// SPDX-License-Identifier: BSD-3-Clause
// A rank comes when the others have given up. It learns why, and does not wait for them.
#include <thread>

#include "faults/operations.hpp"

namespace faults {
namespace {

// The odd rank comes a second after the time limit of the others.
template <class Action>
void late(Cell& c, Action&& action) {
  if (!c.is_odd()) return action();
  std::this_thread::sleep_for(std::chrono::seconds{2});
  try {
    action();
  } catch (const Error& error) {
    // Otherwise it has waited for the others as long as they have waited for it.
    if (error.message().find("(found by rank " + std::to_string(c.rank) + ")") != std::string::npos)
      c.wrong("the rank has waited");
    throw;
  }
  c.wrong("the rank has got no error");
}

MeshOptions impatient(const Cell& c) {
  MeshOptions options = c.options;
  options.timeout = Deadline::Duration{1};
  options.deadline.reset();
  return options;
}
std::vector<Rank> all_ranks(const Cell& c) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < c.size; ++rank) ranks.emplace_back(rank);
  return ranks;
}

void late_close(Cell& c) {
  c.expect({"close of the mesh"}, {});
  Mesh mesh{c.world, "dp=auto", impatient(c)};
  late(c, [&] { mesh.close(); });
}
void late_open(Cell& c) {
  c.expect({"the agreement before"}, {});
  late(c, [&] { const Mesh mesh{c.world, "dp=auto", impatient(c)}; });
}
void late_new_group(Cell& c) {
  c.expect({"new_group"}, {});
  Mesh mesh{c.world, "dp=auto", impatient(c)};
  late(c, [&] { (void)mesh.new_group(all_ranks(c), "pool"); });
}
void late_close_of_group(Cell& c) {
  c.expect({"close of pool"}, {});
  Mesh mesh{c.world, "dp=auto", impatient(c)};
  const auto group = mesh.new_group(all_ranks(c), "pool");
  late(c, [&] { mesh.close(*group); });
}

}  // namespace

Kinds late_members() {
  constexpr auto told = Expected::told;
  return {
      {.name = "late_close", .expected = told, .fault = late_close, .has_one_size = true},
      {.name = "late_open", .expected = told, .fault = late_open, .has_one_size = true},
      {.name = "late_new_group", .expected = told, .fault = late_new_group, .has_one_size = true},
      {.name = "late_group_close",
       .expected = told,
       .fault = late_close_of_group,
       .has_one_size = true},
  };
}

}  // namespace faults
