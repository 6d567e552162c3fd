// SPDX-License-Identifier: BSD-3-Clause
// A job of a few ranks, simulated step by step: the tests know what each rank really waits for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "record/records.hpp"

namespace rankmesh_test {

/// One call of the program of a rank.
struct SimulatedCall {
  std::size_t group = 0;
  CallDescriptor descriptor;
  /// A send waits for its receive, and the root of a broadcast, the others of a reduction, and the
  /// members of a scan wait for all members. Otherwise these calls end at once, and a scan when the
  /// members before this one have made it.
  bool is_synchronous = false;
};

using Program = std::vector<std::vector<SimulatedCall>>;  // of each rank

class SimulatedJob {
 public:
  SimulatedJob(std::int64_t dp, std::int64_t tp, Program program)
      : job{dp, tp}, program_{std::move(program)}, next_(program_.size()), made_(program_.size()) {}

  /// Lets ranks take steps in a random order until no rank can take one.
  /// @param after_step  is called after each step.
  template <class AfterStep>
  void run(std::mt19937& random, AfterStep&& after_step) {
    for (;;) {
      std::vector<std::size_t> able;
      for (std::size_t rank = 0; rank < program_.size(); ++rank)
        if (!is_closed(rank) && (!is_in_call(rank) || can_end(rank))) able.push_back(rank);
      if (able.empty()) {
        // A job that hangs is looked at some time later.
        for (Record& record : job.records) record.read_at = now_ + 2'000'000'000;
        return;
      }
      step(able[random() % able.size()]);
      for (Record& record : job.records) record.read_at = now_;
      after_step();
    }
  }

  [[nodiscard]] bool is_closed(std::size_t rank) const {
    return job.records[rank].presence == rankmesh::record::Presence::closed;
  }
  [[nodiscard]] bool is_complete() const {
    for (std::size_t rank = 0; rank < program_.size(); ++rank)
      if (!is_closed(rank)) return false;
    return true;
  }
  /// Whether the rank is in a call that differs from those of other members.
  [[nodiscard]] bool is_in_different_call(std::size_t rank) const {
    return is_in_call(rank) && number_of(rank) != 0 &&
           !are_equal(current(rank).group, rank, number_of(rank));
  }
  /// Returns the ranks without which the present call of a rank cannot end.
  [[nodiscard]] std::set<std::size_t> needs(std::size_t rank) const {
    if (!is_in_call(rank)) return {};
    return number_of(rank) == 0 ? needs_of_message(rank) : needs_of_collective(rank);
  }

  Job job;

 private:
  [[nodiscard]] bool is_in_call(std::size_t rank) const {
    const auto& calls = job.records[rank].calls;
    return !calls.empty() && !calls.back().is_over();
  }
  [[nodiscard]] const SimulatedCall& current(std::size_t rank) const {
    return program_[rank][next_[rank] - 1];
  }
  [[nodiscard]] std::uint64_t number_of(std::size_t rank) const {
    return job.records[rank].calls.back().number;
  }
  [[nodiscard]] const rankmesh::RankSet& members(std::size_t rank, std::size_t group) const {
    return job.records[rank].groups[group].ranks;
  }
  [[nodiscard]] std::size_t member(std::size_t rank, std::size_t group, std::uint64_t index) const {
    return static_cast<std::size_t>(members(rank, group)[static_cast<std::int64_t>(index)].value());
  }
  // The collectives that a rank has made in a group.
  [[nodiscard]] const std::vector<CallDescriptor>& made(std::size_t rank, std::size_t group) const {
    static const std::vector<CallDescriptor> nothing;
    const auto at = made_[rank].find(group);
    return at == made_[rank].end() ? nothing : at->second;
  }
  [[nodiscard]] bool are_equal(std::size_t group, std::size_t rank, std::uint64_t number) const {
    bool result = true;
    members(rank, group).for_each([&](rankmesh::Rank other) {
      const auto& calls = made(static_cast<std::size_t>(other.value()), group);
      if (calls.size() >= number && !calls[number - 1].matches(made(rank, group)[number - 1]))
        result = false;
    });
    return result;
  }

  [[nodiscard]] std::set<std::size_t> needs_of_collective(std::size_t rank) const {
    const SimulatedCall& call = current(rank);
    const std::uint64_t number = number_of(rank);
    const Operation operation = call.descriptor.operation();
    const std::size_t root = member(rank, call.group, call.descriptor.root());
    std::set<std::size_t> late;
    members(rank, call.group).for_each([&](rankmesh::Rank other) {
      const auto index = static_cast<std::size_t>(other.value());
      if (made(index, call.group).size() < number) late.insert(index);
    });
    if (operation == Operation::broadcast && rank != root)
      return late.contains(root) ? std::set{root} : std::set<std::size_t>{};
    if (operation == Operation::scan && !call.is_synchronous)
      std::erase_if(late, [&](std::size_t other) { return other > rank; });
    const bool may_leave =
        operation == Operation::broadcast || (operation == Operation::reduce && rank != root);
    return may_leave && !call.is_synchronous ? std::set<std::size_t>{} : late;
  }

  using Key = std::tuple<std::size_t, std::size_t, std::size_t, int>;  // group, from, to, tag
  [[nodiscard]] std::vector<std::pair<Key, bool>> ends(std::size_t rank,
                                                       const SimulatedCall& call) const {
    const Operation operation = call.descriptor.operation();
    std::vector<std::pair<Key, bool>> result;  // true: sends
    const int tag = call.descriptor.tag();
    const std::size_t peer = member(rank, call.group, call.descriptor.peer());
    if (operation != Operation::recv) result.push_back({{call.group, rank, peer, tag}, true});
    if (operation == Operation::recv) result.push_back({{call.group, peer, rank, tag}, false});
    if (operation == Operation::send_recv)
      result.push_back(
          {{call.group, member(rank, call.group, call.descriptor.source()), rank, tag}, false});
    return result;
  }
  [[nodiscard]] std::set<std::size_t> needs_of_message(std::size_t rank) const {
    std::set<std::size_t> late;
    for (const auto& [key, is_send] : ends(rank, current(rank))) {
      if (is_send && !current(rank).is_synchronous) continue;
      const auto count = [&](const std::map<Key, std::size_t>& of) {
        const auto at = of.find(key);
        return at == of.end() ? 0 : at->second;
      };
      if (is_send && count(receives_) < count(sends_)) late.insert(std::get<2>(key));
      if (!is_send && count(sends_) < count(receives_)) late.insert(std::get<1>(key));
    }
    return late;
  }

  [[nodiscard]] bool can_end(std::size_t rank) const {
    return needs(rank).empty() && !is_in_different_call(rank);
  }

  void step(std::size_t rank) {
    now_ += 1'000'000;
    Record& record = job.records[rank];
    if (is_in_call(rank)) {
      record.calls.back().state = State::ended;
      record.calls.back().end = now_;
    } else if (next_[rank] == program_[rank].size()) {
      record.presence = rankmesh::record::Presence::closed;
    } else {
      const SimulatedCall& call = program_[rank][next_[rank]++];
      job.add(rank, call.group, call.descriptor, State::issued).begin = now_;
      if (number_of(rank) != 0) made_[rank][call.group].push_back(call.descriptor);
      if (number_of(rank) != 0) return;
      for (const auto& [key, is_send] : ends(rank, call)) ++(is_send ? sends_ : receives_)[key];
    }
  }

  Program program_;
  std::vector<std::size_t> next_;
  std::vector<std::map<std::size_t, std::vector<CallDescriptor>>> made_;
  std::map<Key, std::size_t> sends_, receives_;
  rankmesh::record::Time now_ = 0;
};

}  // namespace rankmesh_test
