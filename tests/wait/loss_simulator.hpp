// SPDX-License-Identifier: BSD-3-Clause
// Members that agree on losses, in a simulated network, which loses, delays, repeats and reorders
// messages.
#pragma once

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

namespace rankmesh_test {

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

}  // namespace rankmesh_test
