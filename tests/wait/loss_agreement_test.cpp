// SPDX-License-Identifier: BSD-3-Clause
// The agreement on losses in a simulated network. RANKMESH_SCHEDULES sets how many schedules are
// tried.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "loss_simulator.hpp"

namespace {

using rankmesh_test::Attendance;
using rankmesh_test::Conditions;
using rankmesh_test::Cut;
using rankmesh_test::Decision;
using rankmesh_test::Failure;
using rankmesh_test::LossAgreement;
using rankmesh_test::Members;
using rankmesh_test::World;

Members set_of(std::uint32_t size, const std::vector<std::uint32_t>& members) {
  Members set(size);
  for (const std::uint32_t m : members) set[m] = true;
  return set;
}

std::int64_t schedules(std::int64_t by_default) {
  const char* const text = std::getenv("RANKMESH_SCHEDULES");
  return text == nullptr ? by_default : std::atoll(text);
}

// One schedule that the seed determines.
void try_schedule(std::uint64_t seed) {
  CAPTURE(seed);
  std::mt19937_64 random{seed};
  const auto below = [&](int end) {
    return std::uniform_int_distribution<int>{0, end - 1}(random);
  };
  Conditions conditions;
  conditions.members = static_cast<std::uint32_t>(2 + below(6));
  const auto size = static_cast<int>(conditions.members);
  if (below(2) == 0) conditions.spares = static_cast<std::uint32_t>(below(size));
  conditions.loss = below(2) == 0 ? 0 : below(5) * 0.1;
  conditions.delay = 1 + below(6);
  conditions.times.retry = below(2) == 0 ? 4 : 2 * conditions.delay + 2;
  // Answers come in time.
  const bool is_good = conditions.loss == 0 && conditions.times.retry > 2 * conditions.delay;
  const bool has_cuts = below(2) == 0;
  for (int i = has_cuts ? 1 + below(2) : 0; i > 0; --i) {
    Cut cut{.from = Members(conditions.members), .is_one_way = below(2) == 0, .begin = below(40)};
    for (int m = 0; m < size; ++m) cut.from[m] = below(2) == 0;
    cut.end = cut.begin + below(150);
    conditions.cuts.push_back(cut);
    conditions.quiet_at = std::max(conditions.quiet_at, cut.end);
  }
  World world{seed, conditions};
  const int deaths = below(size);
  for (int i = 0; i < deaths; ++i) {
    const auto victim = static_cast<std::uint32_t>(below(size));
    if (below(2) == 0)
      world.kill_at(victim, below(60));
    else
      world.kill_after_messages(victim, below(30));
  }
  const bool has_stops = below(4) == 0;
  if (has_stops) {
    const int begin = below(40);
    world.stop(static_cast<std::uint32_t>(below(size)), begin, begin + below(200));
  }
  const bool has_exclusions = below(4) == 0;
  for (int i = has_exclusions ? 1 + below(2) : 0; i > 0; --i) {
    const auto by = static_cast<std::uint32_t>(below(size));
    world.exclude_at(static_cast<std::uint32_t>(below(size)), by, below(100));
  }
  world.run();
  std::uint32_t dead = 0;
  for (std::uint32_t m = 0; m < world.size(); ++m)
    if (!world.is_alive(m) && world.of(m).failure() == Failure::none) ++dead;
  const std::uint32_t members = world.size() - conditions.spares;
  if (has_cuts || has_stops || has_exclusions || !is_good) return;
  // Only the dead are lost, and the others go on if they are the majority at any time.
  for (const Decision& decision : world.decisions())
    for (std::uint32_t m = 0; m < world.size(); ++m)
      REQUIRE((!decision.lost[m] || !world.is_alive(m)));
  if (2 * dead >= members) return;
  for (std::uint32_t m = 0; m < world.size(); ++m) REQUIRE(world.of(m).failure() == Failure::none);
}

TEST_CASE("in seeded schedules all members decide the same, and nobody waits for ever") {
  const std::int64_t count = schedules(3000);
  for (std::int64_t seed = 0; seed < count; ++seed) try_schedule(static_cast<std::uint64_t>(seed));
}

TEST_CASE("a death is agreed on, with the least step of the survivors, and all go on") {
  World world{1, {}};
  world.kill_at(0, 10);
  world.run();
  REQUIRE(world.decisions().size() == 2);
  CHECK(world.decisions()[0].lost == set_of(5, {0}));
  CHECK(world.decisions()[1].kind == Decision::DecisionKind::over);
}

TEST_CASE("of two parts that do not hear each other, the larger one goes on") {
  for (const bool is_one_way : {false, true}) {
    CAPTURE(is_one_way);
    World world{2,
                {.members = 6, .quiet_at = 400, .cuts = {{set_of(6, {0, 1}), is_one_way, 5, 400}}}};
    world.run();
    REQUIRE(!world.decisions().empty());
    CHECK(world.decisions().back().kind == Decision::DecisionKind::over);
    CHECK(world.decisions().back().lost == set_of(6, {0, 1}));
    CHECK(world.of(0).failure() != Failure::none);
    CHECK(world.of(1).failure() != Failure::none);
  }
}

TEST_CASE("a cut that no member notices by itself is found by the leader") {
  World world{7,
              {.members = 8,
               .quiet_at = 400,
               .cuts = {{set_of(8, {0, 1}), false, 5, 400, set_of(8, {4, 5})}},
               .watch_all = false}};
  world.kill_at(2, 10);
  world.run();
  CHECK(world.decisions().back().kind == Decision::DecisionKind::over);
  CHECK(world.decisions().back().lost == set_of(8, {2, 4, 5}));
}

TEST_CASE("of two halves, the one with the lowest member goes on") {
  World world{3, {.members = 4, .quiet_at = 400, .cuts = {{set_of(4, {0, 1}), false, 5, 400}}}};
  world.run();
  CHECK(world.decisions().back().lost == set_of(4, {2, 3}));
  CHECK(world.of(0).is_over());
  CHECK(world.of(3).failure() != Failure::none);
}

TEST_CASE("a minority stops") {
  World world{4, {.members = 5}};
  for (const std::uint32_t m : {0U, 2U, 4U}) world.kill_at(m, 10);
  world.run();
  CHECK(world.of(1).failure() == Failure::no_majority);
  CHECK(world.of(3).failure() == Failure::no_majority);
}

TEST_CASE("a member that was stopped for long learns that it is excluded") {
  World world{5, {.members = 5, .quiet_at = 400}};
  world.stop(4, 5, 400);
  world.run();
  CHECK(world.decisions().front().lost == set_of(5, {4}));
  CHECK(world.of(4).failure() == Failure::excluded);
  CHECK(world.of(0).is_over());
}

TEST_CASE("a member that lives and is excluded by another one learns it, and the others go on") {
  World world{8, {.members = 5}};
  world.exclude_at(0, 3, 10);
  world.run();
  CHECK(world.decisions().front().lost == set_of(5, {0}));
  CHECK(world.of(0).failure() == Failure::excluded);
  CHECK(world.of(3).is_over());
}

TEST_CASE("members that exclude each other end, and the others go on") {
  World world{9, {.members = 5, .loss = 0.2}};
  world.exclude_at(1, 3, 10);
  world.exclude_at(3, 1, 10);
  world.run();
  CHECK(world.of(0).is_over());
  CHECK(world.of(2).is_over());
  CHECK(world.of(4).is_over());
}

TEST_CASE("the loss of a spare member is part of the next loss") {
  World world{10, {.members = 6, .spares = 2}};
  world.kill_at(4, 10);
  world.run();
  CHECK(world.decisions().empty());
  World later{10, {.members = 6, .spares = 2}};
  later.kill_at(4, 10);
  later.kill_at(1, 40);
  later.run();
  REQUIRE(later.decisions().size() == 2);
  CHECK(later.decisions()[0].lost == set_of(6, {1, 4}));
  CHECK(later.decisions()[0].step >= 7);
}

TEST_CASE("spare members decide between two halves") {
  for (const bool are_spares_dead : {false, true}) {
    World world{11, {.members = 6, .spares = 2}};
    for (const std::uint32_t m : {0U, 1U}) world.kill_at(m, 10);
    if (are_spares_dead)
      for (const std::uint32_t m : {4U, 5U}) world.kill_at(m, 10);
    world.run();
    CHECK(world.of(2).is_over() == !are_spares_dead);
    CHECK((world.of(2).failure() == Failure::no_majority) == are_spares_dead);
  }
}

TEST_CASE("spare members do not go on alone") {
  World world{13, {.members = 8, .spares = 4}};
  for (const std::uint32_t m : {0U, 1U, 2U, 3U}) world.kill_at(m, 10);
  world.run();
  for (const std::uint32_t m : {4U, 5U, 6U, 7U})
    CHECK(world.of(m).failure() == Failure::no_majority);
}

TEST_CASE("a spare member that hears nobody stops, and does not disturb the others") {
  for (const bool is_one_way : {false, true}) {
    CAPTURE(is_one_way);
    World world{12,
                {.members = 5,
                 .spares = 1,
                 .quiet_at = 800,
                 .cuts = {{set_of(5, {0, 1, 2, 3}), is_one_way, 5, 800}}}};
    world.run();
    CHECK(world.of(4).failure() == Failure::no_majority);
    CHECK(world.decisions().empty());
  }
}

TEST_CASE("a member that closes the mesh tells the spare ones") {
  using Addressed = LossAgreement::Addressed;
  std::vector<std::unique_ptr<LossAgreement>> all;
  for (std::uint32_t m = 0; m < 4; ++m)
    all.push_back(std::make_unique<LossAgreement>(
        4, m, LossAgreement::Times{}, [] { return std::vector<LossAgreement::StepOfMember>{}; },
        [](const Members&) {
          return LossAgreement::Staying{set_of(4, {0, 1, 2, 3}), set_of(4, {2, 3})};
        }));
  const auto deliver = [&](std::uint32_t from) {
    const std::vector<Addressed> messages = all[from]->take_messages();
    for (const Addressed& one : messages) all[one.to]->receive(from, one.message);
    return messages.size();
  };
  all[0]->see_death(3);
  CHECK(!all[0]->close());
  CHECK(deliver(0) == 1);
  CHECK(all[2]->met() == Attendance::closed);
  CHECK(all[1]->met() == Attendance::none);
  CHECK(deliver(2) == 1);
  CHECK(all[0]->close());
  CHECK(deliver(0) == 0);
}

TEST_CASE("a thousand members") {
  Conditions conditions{.members = 1000, .loss = 0.1};
  conditions.times.silence = 100;
  World world{6, conditions};
  std::vector<std::uint32_t> dead;
  for (std::uint32_t m = 0; m < 1000; m += 37) dead.push_back(m);
  for (const std::uint32_t m : dead) world.kill_at(m, 10 + world.below(3));
  world.run();
  REQUIRE(!world.decisions().empty());
  CHECK(world.decisions().back().kind == Decision::DecisionKind::over);
  CHECK(world.decisions().back().lost == set_of(1000, dead));
  CHECK(world.sent() < 200'000);  // so their number does not grow with the square of the members
}

}  // namespace
