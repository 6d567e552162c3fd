// SPDX-License-Identifier: BSD-3-Clause
// Random programs are simulated until they end or hang. The diagnosis must name what the simulation
// knows, and must not claim an error in a program that ends.
#include <doctest/doctest.h>

#include <array>
#include <random>
#include <set>
#include <utility>

#include "record/simulated_job.hpp"
#include "support/iterations.hpp"

namespace rankmesh_test::diagnosis_simulation_test {

using rankmesh::record::diagnose;
using rankmesh::record::Diagnosis;
using rankmesh::record::Finding;
using rankmesh::record::Step;

namespace {

struct Shape {
  std::int64_t dp, tp;
};
constexpr std::array<Shape, 6> shapes{{{1, 2}, {1, 3}, {2, 2}, {1, 5}, {2, 3}, {3, 2}}};

std::size_t below(std::mt19937& random, std::size_t bound) { return random() % bound; }

CallDescriptor random_collective(std::mt19937& random, std::size_t size) {
  constexpr std::array operations{Operation::barrier,    Operation::all_reduce,
                                  Operation::all_gather, Operation::broadcast,
                                  Operation::reduce,     Operation::scan};
  const Operation operation = operations[below(random, operations.size())];
  const bool has_root = operation == Operation::broadcast || operation == Operation::reduce;
  return collective(operation, static_cast<std::int64_t>(1 + below(random, 2)),
                    has_root ? below(random, size) : 0);
}

// A program that ends: all ranks make their calls in the order of one common list.
Program correct_program(std::mt19937& random, const Job& job) {
  Program program(job.records.size());
  for (std::size_t i = 4 + below(random, 12); i > 0; --i) {
    const std::size_t rank = below(random, job.records.size());
    const std::size_t group = below(random, 3);
    const rankmesh::RankSet& members = job.records[rank].groups[group].ranks;
    const auto size = static_cast<std::size_t>(members.size());
    const bool is_synchronous = below(random, 2) == 0;
    const auto of = [&](std::size_t index) -> auto& {
      return program[static_cast<std::size_t>(members[static_cast<std::int64_t>(index)].value())];
    };
    const std::size_t kind = size < 2 ? 0 : below(random, 5);
    if (kind == 3) {
      const std::size_t from = below(random, size);
      const std::size_t to = (from + 1 + below(random, size - 1)) % size;
      const std::size_t tag = below(random, 2);
      of(from).push_back({group, message(Operation::send, to, tag), is_synchronous});
      of(to).push_back({group, message(Operation::recv, from, tag), false});
    } else if (kind == 4) {
      for (std::size_t index = 0; index < size; ++index)
        of(index).push_back(
            {group,
             message(Operation::send_recv, (index + 1) % size, 0, 8, (index + size - 1) % size),
             is_synchronous});
    } else {
      const CallDescriptor call = random_collective(random, size);
      for (std::size_t index = 0; index < size; ++index)
        of(index).push_back({group, call, is_synchronous});
    }
  }
  return program;
}

// Exchanges two calls of a rank, leaves one out, repeats one, or changes a tag.
void break_program(std::mt19937& random, Program& program) {
  std::vector<SimulatedCall>& calls = program[below(random, program.size())];
  if (calls.size() < 2) return;
  const std::size_t at = below(random, calls.size() - 1);
  const auto place = calls.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(random, 4)) {
    case 0:
      std::swap(calls[at], calls[at + 1]);
      break;
    case 1:
      calls.erase(place);
      break;
    case 2:
      calls.insert(place, SimulatedCall{*place});
      break;
    default:
      if (rankmesh::is_point_to_point(calls[at].descriptor.operation()))
        calls[at].descriptor.detail ^= 1;
      else
        calls[at].descriptor.count += 1;
  }
}

std::size_t only_rank(const rankmesh::RankSet& ranks) {
  REQUIRE(ranks.size() == 1);
  return static_cast<std::size_t>(ranks.front().value());
}

// A rank whose call differs from those of other members may wait for anybody.
bool really_waits(const SimulatedJob& simulated, std::size_t rank, std::size_t needed) {
  return simulated.needs(rank).contains(needed) || simulated.is_in_different_call(rank);
}

void check_circle(const SimulatedJob& simulated, const Finding& finding) {
  REQUIRE(finding.steps.size() >= 2);
  for (std::size_t i = 0; i < finding.steps.size(); ++i) {
    const Step& step = finding.steps[i];
    const std::size_t next = only_rank(step.waits_for);
    CHECK(next == only_rank(finding.steps[(i + 1) % finding.steps.size()].ranks));
    CHECK(really_waits(simulated, only_rank(step.ranks), next));
  }
}

void check_chain(const SimulatedJob& simulated, const Finding& finding) {
  for (std::size_t i = 0; i + 1 < finding.steps.size(); ++i)
    CHECK(really_waits(simulated, only_rank(finding.steps[i].ranks),
                       only_rank(finding.steps[i + 1].ranks)));
  const std::size_t root = only_rank(finding.steps.back().ranks);
  CHECK((simulated.is_closed(root) || simulated.is_in_different_call(root)));
}

void check_hang(const SimulatedJob& simulated, const Diagnosis& diagnosis) {
  std::set<std::size_t> explained;
  bool has_cause = false;
  const auto add = [&](const rankmesh::RankSet& ranks) {
    ranks.for_each(
        [&](rankmesh::Rank rank) { explained.insert(static_cast<std::size_t>(rank.value())); });
  };
  for (const Finding& finding : diagnosis.findings) {
    if (finding.kind == Finding::Kind::circle) check_circle(simulated, finding);
    const bool is_chain = !finding.waiting.empty() && finding.kind != Finding::Kind::circle;
    if (is_chain) check_chain(simulated, finding);
    CHECK(finding.kind != Finding::Kind::progress);
    has_cause = has_cause || finding.severity != Finding::Severity::note;
    add(finding.ranks);
    add(finding.waiting);
  }
  CHECK(has_cause);
  for (std::size_t rank = 0; rank < simulated.job.records.size(); ++rank)
    if (!simulated.is_closed(rank)) CHECK(explained.contains(rank));
  for (const auto& rank : diagnosis.ranks) {
    if (!rank.is_certain) continue;
    const auto needs = simulated.needs(static_cast<std::size_t>(rank.rank.value()));
    rank.waits_for.for_each([&](rankmesh::Rank needed) {
      CHECK(needs.contains(static_cast<std::size_t>(needed.value())));
    });
  }
}

bool is_claimed(const Diagnosis& diagnosis, Finding::Severity most) {
  for (const Finding& finding : diagnosis.findings)
    if (finding.severity <= most) return true;
  return false;
}

struct Outcome {
  std::size_t complete = 0, hanging = 0;
};

void simulate(std::uint32_t seed, Outcome& outcome) {
  CAPTURE(seed);
  std::mt19937 random{seed};
  const Shape shape = shapes[below(random, shapes.size())];
  Program program = correct_program(random, Job{shape.dp, shape.tp});
  for (std::size_t i = below(random, 3); i > 0; --i) break_program(random, program);
  SimulatedJob simulated{shape.dp, shape.tp, program};
  std::vector<std::vector<Record>> snapshots;
  // The records of `mixed` are read at different times.
  std::vector<Record> mixed = simulated.job.records;
  simulated.run(random, [&] {
    if (below(random, 8) == 0) snapshots.push_back(simulated.job.records);
    const std::size_t rank = below(random, mixed.size());
    if (below(random, 4) == 0) mixed[rank] = simulated.job.records[rank];
    if (below(random, 16) == 0) snapshots.push_back(mixed);
  });
  const Diagnosis last = simulated.job.diagnose();
  INFO(lines(last));
  if (!simulated.is_complete()) {
    ++outcome.hanging;
    return check_hang(simulated, last);
  }
  ++outcome.complete;
  // Programs that end by luck, for example with a broadcast too many, may be wrong all the same.
  if (is_claimed(last, Finding::Severity::warning)) return;
  for (const auto& snapshot : snapshots) {
    const Diagnosis before = diagnose(snapshot);
    INFO(lines(before));
    CHECK(!before.has_error());
  }
}

}  // namespace

TEST_CASE("simulated programs: hangs are explained, and programs that end are not accused") {
  Outcome outcome;
  const int programs = iterations(1500, 1);
  for (int seed = 1; seed <= programs; ++seed) simulate(static_cast<std::uint32_t>(seed), outcome);
  CHECK(outcome.complete > programs / 10);
  CHECK(outcome.hanging > programs / 10);
}

TEST_CASE("simulated programs: a correct program ends without any claim") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const Shape shape = shapes[below(random, shapes.size())];
    SimulatedJob simulated{shape.dp, shape.tp, correct_program(random, Job{shape.dp, shape.tp})};
    simulated.run(random, [] {});
    const Diagnosis last = simulated.job.diagnose();
    INFO(lines(last));
    // A ring of sends that wait for their receives does not hang: both are one call.
    CHECK(simulated.is_complete());
    CHECK(!is_claimed(last, Finding::Severity::warning));
  }
}

}  // namespace rankmesh_test::diagnosis_simulation_test
