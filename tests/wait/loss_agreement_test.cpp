// SPDX-License-Identifier: BSD-3-Clause
// The agreement on losses in a simulated network, which loses, delays, repeats and reorders
// messages. RANKMESH_SCHEDULES sets how many schedules are tried.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "wait/detail/loss_agreement.hpp"

namespace {

using rankmesh::detail::LossAgreement;
using Decision = LossAgreement::Decision;
using Attendance = LossAgreement::Attendance;
using Members = LossAgreement::Members;
using Failure = LossAgreement::Failure;

constexpr int units = 10;  // of time, in a tick

// Messages from some members to others, or to all others, do not arrive.
struct Cut {
  Members from;
  bool is_one_way = false;
  int begin = 0, end = 0;  // in ticks
  Members to{};
  [[nodiscard]] bool has(std::uint32_t a, std::uint32_t b) const {
    const auto leads = [&](std::uint32_t x, std::uint32_t y) {
      return from[x] && (to.empty() ? !from[y] : to[y]);
    };
    return leads(a, b) || (!is_one_way && leads(b, a));
  }
};

struct Conditions {
  std::uint32_t members = 5;
  std::uint32_t spares = 0;  // so many of them, the last ones, are spare
  double loss = 0;
  int delay = 2;      // at most, in ticks
  int quiet_at = 60;  // from then on all messages arrive
  std::vector<Cut> cuts{};
  bool watch_all = true;  // or only the members of the next nodes
  LossAgreement::Times times{.settle = 4, .retry = 4, .silence = 40, .give_up = 250};
};

// Members whose numbers differ only in the last bit are on one node: they see each other's deaths
// at once, and know each other's steps. The others only notice that they hear nothing.
class World {
 public:
  World(std::uint64_t seed, Conditions conditions)
      : random_{seed}, conditions_{std::move(conditions)} {
    for (std::uint32_t m = 0; m < conditions_.members; ++m) {
      steps_.push_back(is_spare(m) ? -1 : 7 + below(2));
      members_.push_back({});
      members_.back().heard.resize(conditions_.members);
    }
    for (std::uint32_t m = 0; m < conditions_.members; ++m) {
      std::vector<LossAgreement::StepOfMember> steps{{m, steps_[m]}};
      if ((m ^ 1) < conditions_.members) steps.emplace_back(m ^ 1, steps_[m ^ 1]);
      members_[m].agreement = std::make_unique<LossAgreement>(
          conditions_.members, m, conditions_.times, [steps] { return steps; },
          [this](const Members& lost) { return staying_after(lost); });
      members_[m].phase = below(units);
    }
  }

  int below(int end) { return std::uniform_int_distribution<int>{0, end - 1}(random_); }

  void kill_at(std::uint32_t member, int tick) { members_[member].dies_at = tick; }
  // It dies while it sends: the first of its messages have left.
  void kill_after_messages(std::uint32_t member, int messages) {
    members_[member].messages_left = messages;
  }
  // A member, or itself, says that it is out, although it lives: it was late.
  void exclude_at(std::uint32_t member, std::uint32_t by, int tick) {
    members_[by].excludes = member;
    members_[by].excludes_at = tick;
  }
  void stop(std::uint32_t member, int begin, int end) {
    members_[member].stopped_at = begin;
    members_[member].continued_at = end;
  }

  // Runs until nobody has anything to do.
  void run() {
    for (tick_ = 0; tick_ < most_ticks; ++tick_) {
      for (int unit = 0; unit < units; ++unit) {
        now_ = tick_ * units + unit;
        deliver();
        for (std::uint32_t m = 0; m < size(); ++m)
          if (members_[m].phase == unit) turn(m);
      }
      if (tick_ > conditions_.quiet_at && is_done()) return;
    }
    for (std::uint32_t m = 0; m < size(); ++m) {
      const LossAgreement& own = of(m);
      MESSAGE(m << (is_alive(m) ? "" : " is dead") << ", failure "
                << static_cast<int>(own.failure()) << ", " << own.decisions().size() << " decisions"
                << (own.is_deciding() ? ", decides" : "") << ", meeting "
                << static_cast<int>(members_[m].met));
    }
    FAIL("a member still waits");
  }

  [[nodiscard]] std::uint32_t size() const { return conditions_.members; }
  [[nodiscard]] bool is_spare(std::uint32_t m) const { return m >= size() - conditions_.spares; }
  [[nodiscard]] bool is_alive(std::uint32_t m) const { return !members_[m].is_dead; }
  [[nodiscard]] const LossAgreement& of(std::uint32_t m) const { return *members_[m].agreement; }
  [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }
  [[nodiscard]] std::size_t sent() const { return sent_; }

 private:
  static constexpr int most_ticks = 5000;
  struct Member {
    std::unique_ptr<LossAgreement> agreement;
    bool is_dead = false;
    int dies_at = -1, messages_left = -1;
    int stopped_at = -1, continued_at = -1;
    std::uint32_t excludes = 0;
    int excludes_at = -1;
    int phase = 0;
    std::vector<int> heard{};  // when it has heard of each member's node
    std::size_t known = 0;     // decisions that the world has compared
    int comes_at = 0;
    Attendance met = Attendance::none;
  };
  struct Flight {
    int time = 0;
    std::uint64_t number = 0;
    std::uint32_t from = 0, to = 0;
    std::shared_ptr<const LossAgreement::LossMessage> message;
    bool operator>(const Flight& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  // Spare members take the places of lost ones in their order.
  [[nodiscard]] LossAgreement::Staying staying_after(const Members& lost) const {
    LossAgreement::Staying stay{.all = lost, .spare = Members(size())};
    stay.all.flip();
    const std::uint32_t first = size() - conditions_.spares;
    auto places = std::count(lost.begin(), lost.begin() + first, true);
    for (std::uint32_t m = first; m < size(); ++m)
      if (!lost[m] && places-- <= 0) stay.spare[m] = true;
    return stay;
  }
  [[nodiscard]] bool is_quiet() const { return tick_ >= conditions_.quiet_at; }
  [[nodiscard]] bool is_stopped(const Member& member) const {
    return tick_ >= member.stopped_at && tick_ < member.continued_at;
  }
  [[nodiscard]] bool is_cut(std::uint32_t from, std::uint32_t to) const {
    return std::ranges::any_of(conditions_.cuts, [&](const Cut& cut) {
      return tick_ >= cut.begin && tick_ < cut.end && cut.has(from, to);
    });
  }

  void deliver() {
    while (!flights_.empty() && flights_.top().time <= now_) {
      const Flight flight = flights_.top();
      flights_.pop();
      Member& to = members_[flight.to];
      if (to.is_dead || is_cut(flight.from, flight.to)) continue;
      if (is_stopped(to)) {
        flights_.push({to.continued_at * units, number_++, flight.from, flight.to, flight.message});
        continue;
      }
      hear(flight.to, flight.from);
      to.agreement->receive(flight.from, *flight.message);
      look_at(flight.to);
    }
  }
  void hear(std::uint32_t m, std::uint32_t from) {
    members_[m].heard[from] = tick_;
    if ((from ^ 1) < size()) members_[m].heard[from ^ 1] = tick_;
  }
  void post(std::uint32_t from, std::uint32_t to, const LossAgreement::LossMessage& message) {
    ++sent_;
    const auto shared = std::make_shared<const LossAgreement::LossMessage>(message);
    const int copies = below(20) == 0 ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      if (!is_quiet() && std::uniform_real_distribution<>{}(random_) < conditions_.loss) continue;
      flights_.push({now_ + 1 + below(conditions_.delay * units), number_++, from, to, shared});
    }
  }

  // What the process of a member does in one tick.
  void turn(std::uint32_t m) {
    Member& member = members_[m];
    if (member.is_dead || is_stopped(member)) return;
    if (member.dies_at >= 0 && tick_ >= member.dies_at) return die(m);
    LossAgreement& agreement = *member.agreement;
    if (agreement.failure() != Failure::none) {  // its program ends
      member.dies_at = tick_ + 5;
      return;
    }
    if (const std::uint32_t peer = m ^ 1; peer < size() && members_[peer].is_dead)
      agreement.see_death(peer);
    if (member.excludes_at >= 0 && tick_ >= member.excludes_at) {
      member.excludes_at = -1;
      if (!agreement.is_over()) agreement.see_death(member.excludes);
    }
    for (std::uint32_t other = 0; other < size(); ++other)
      if (watches(m / 2, other / 2) && tick_ - member.heard[other] > conditions_.times.silence)
        agreement.see_silence(other);
    agreement.tick();
    // The owner goes to the meetings.
    if (!agreement.decisions().empty() && agreement.failure() == Failure::none &&
        tick_ >= member.comes_at) {
      const Attendance last = member.met;
      if (last == Attendance::none) member.met = Attendance::before;
      if (last == Attendance::before && agreement.have_all_come()) member.met = Attendance::opened;
      if (member.met != last && !agreement.is_over()) {
        agreement.come(member.met);
        member.comes_at = tick_ + below(10);
      }
    }
    look_at(m);
    const auto next =
        static_cast<std::uint32_t>(m + 1 + tick_ / 3 % (static_cast<int>(size()) - 1));
    if (tick_ % 3 == 0 && !member.is_dead) post(m, next % size(), agreement.hello());
  }
  [[nodiscard]] bool watches(std::uint32_t node, std::uint32_t other) const {
    const std::uint32_t nodes = (size() + 1) / 2;
    return node != other &&
           (conditions_.watch_all || (node + 1) % nodes == other || (other + 1) % nodes == node);
  }
  void die(std::uint32_t m) { members_[m].is_dead = true; }

  // Sends its messages, and compares its decisions with those of the others.
  void look_at(std::uint32_t m) {
    Member& member = members_[m];
    compare(m);  // also if it dies before it can tell others
    for (const auto& out : member.agreement->take_messages()) {
      if (member.messages_left == 0) return die(m);
      if (member.messages_left > 0) --member.messages_left;
      post(m, out.to, out.message);
    }
  }
  void compare(std::uint32_t m) {
    Member& member = members_[m];
    const auto& own = member.agreement->decisions();
    for (; member.known < own.size(); ++member.known) {
      if (member.known == decisions_.size()) judge(own[member.known]);
      REQUIRE(decisions_[member.known] == own[member.known]);
      member.met = Attendance::none;
      member.comes_at = tick_ + below(10);
    }
  }

  // The first member has learned a decision.
  void judge(const Decision& decision) {
    const Members before = decisions_.empty() ? Members(size()) : decisions_.back().lost;
    REQUIRE((decisions_.empty() || decisions_.back().kind == Decision::DecisionKind::loss));
    if (decision.kind == Decision::DecisionKind::over) {
      for (const Member& member : members_)
        if (!before[&member - members_.data()]) REQUIRE(member.met == Attendance::opened);
      REQUIRE(decision.lost == before);
    } else {
      bool is_new = false;
      for (std::uint32_t m = 0; m < size(); ++m) {
        REQUIRE((!before[m] || decision.lost[m]));
        // Spare members alone do not disturb the others.
        is_new = is_new || (decision.lost[m] != before[m] && (!decisions_.empty() || !is_spare(m)));
      }
      REQUIRE(is_new);
    }
    if (decision.kind == Decision::DecisionKind::loss) {
      std::int64_t least = 99;
      if (!decisions_.empty()) least = decisions_.front().step;
      for (std::uint32_t m = 0; m < size(); ++m)
        if (!decision.lost[m] && decisions_.empty() && !is_spare(m))
          least = std::min(least, steps_[m]);
      REQUIRE(decision.step == least);
    }
    decisions_.push_back(decision);
  }

  [[nodiscard]] bool is_done() const {
    for (std::uint32_t m = 0; m < size(); ++m) {
      const Member& member = members_[m];
      const LossAgreement& own = *member.agreement;
      if (member.is_dead || own.failure() != Failure::none || own.is_over()) continue;
      if (member.dies_at >= 0 || is_stopped(member)) return false;
      // It goes on with what it has only if nothing has happened.
      if (own.is_deciding() || own.decisions().size() != decisions_.size() || !decisions_.empty())
        return false;
      for (std::uint32_t other = 0; other < size(); ++other)
        if (!is_spare(other) && (members_[other].is_dead || of(other).failure() != Failure::none))
          return false;
    }
    return true;
  }

  std::mt19937_64 random_;
  Conditions conditions_;
  std::vector<std::int64_t> steps_;
  std::vector<Member> members_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  std::uint64_t number_ = 0;
  std::size_t sent_ = 0;
  std::vector<Decision> decisions_;
  int tick_ = 0, now_ = 0;
};

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
