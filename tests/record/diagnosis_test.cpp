// SPDX-License-Identifier: BSD-3-Clause
#include "record/diagnosis.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <random>
#include <string>

#include "record/records.hpp"
#include "support/checks.hpp"

namespace rankmesh_test::diagnosis_test {

using rankmesh::RankSet;
using rankmesh::record::Activity;
using rankmesh::record::Carrier;
using rankmesh::record::Diagnosis;
using rankmesh::record::duration_text;
using rankmesh::record::Finding;
using rankmesh::record::Presence;
using rankmesh::record::Process;
using rankmesh::record::Time;
using rankmesh::record::Wait;
using enum rankmesh::record::State;

namespace {

const CallDescriptor barrier = collective(Operation::barrier);
const CallDescriptor all_reduce = collective(Operation::all_reduce);

}  // namespace

TEST_CASE("all ranks outside rankmesh are named together, whatever their last calls were") {
  Job job{1, 4};
  job.call({0, 1, 2, 3}, Job::tp, collective(rankmesh::Operation::barrier));
  job.add(3, Job::dp, collective(rankmesh::Operation::barrier));
  job.add(0, Job::tp, collective(rankmesh::Operation::all_reduce), State::issued);
  job[2].process = rankmesh::record::Process::sleeping;
  CHECK_CONTAINS(
      lines(job.diagnose()),
      "note waits [1-3] Rank 0 (dp=0,tp=0) waits for ranks 1 (dp=0,tp=1), 2 "
      "(dp=0,tp=2) and 3 (dp=0,tp=3) in tp.all_reduce(8 x float32, sum), call 2; ranks 1 "
      "(dp=0,tp=1) and 2 (dp=0,tp=2) are outside rankmesh since tp.barrier(), call 1; "
      "rank 3 (dp=0,tp=3) runs outside rankmesh since dp.barrier(), call 1.");
}

TEST_CASE("a rank outside rankmesh: the chain of waits leads to it, with its last call") {
  Job job{2, 2};
  job.call(job.all(), Job::dp, barrier);
  job[3].calls.back().end = 100 * second - 12'340'000'000;
  job.call({0, 1}, Job::tp, all_reduce).call({2}, Job::tp, all_reduce, issued);
  job.call({0}, Job::dp, all_reduce, issued);
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  const Finding& finding = diagnosis.findings[0];
  CHECK(finding.text ==
        "Rank 2 (dp=1,tp=0) waits for rank 3 (dp=1,tp=1) in tp.all_reduce(8 x float32, sum), call "
        "1; rank 3 (dp=1,tp=1) runs outside rankmesh since dp.barrier(), call 1, which ended 12.3 "
        "s ago. In turn, rank 0 (dp=0,tp=0) waits for rank 2 (dp=1,tp=0) in dp.all_reduce(8 x "
        "float32, sum), call 2.");
  CHECK(finding.kind == Finding::Kind::waits);
  CHECK(finding.severity == Finding::Severity::note);
  CHECK(finding.ranks == RankSet::parse("3"));
  CHECK(finding.waiting == RankSet::parse("0,2"));
  REQUIRE(finding.steps.size() == 3);
  CHECK(finding.steps[0].waits_for == RankSet::parse("2"));
  CHECK(finding.steps[2].waits_for.empty());
  CHECK(!diagnosis.has_error());
  REQUIRE(diagnosis.ranks.size() == 4);
  CHECK(diagnosis.ranks[2].activity == Activity::call);
  CHECK(diagnosis.ranks[2].waits_for == RankSet::parse("3"));
  CHECK(diagnosis.ranks[2].is_certain);
  CHECK(diagnosis.ranks[3].activity == Activity::outside);
  CHECK(diagnosis.ranks[3].text == "outside rankmesh since dp.barrier(), call 1");
  CHECK(diagnosis.ranks[3].since == 100 * second - 12'340'000'000);
}

TEST_CASE("what the rank does for which others wait") {
  struct Case {
    Process process;
    Presence presence;
    Finding::Severity severity;
    Finding::Kind kind;
    std::string text;
  };
  using enum rankmesh::Severity;
  constexpr auto waits = Finding::Kind::waits;
  constexpr auto open = Presence::open;
  const std::string last = "world.barrier(), call 1";
  const Case cases[] = {
      {Process::running, open, note, waits, "runs outside rankmesh since " + last},
      {Process::sleeping, open, note, waits, "sleeps outside rankmesh since " + last},
      {Process::unknown, open, note, waits, "is outside rankmesh since " + last},
      {Process::stopped, open, warning, waits,
       "is stopped by a signal or a debugger outside rankmesh, after " + last},
      {Process::ended, open, error, waits, "has ended outside rankmesh, after " + last},
      {Process::running, Presence::closed, error, Finding::Kind::missing_call,
       "has closed the mesh. Ranks 0-2 have made 2 calls of world, and rank 3 has made 1"},
      {Process::ended, Presence::destroyed, error, waits, "has destroyed the mesh without close()"},
      {Process::ended, Presence::failed, error, waits,
       "has left the mesh by an exception: bad step"}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    Job job{2, 2};
    job.call(job.all(), Job::world, barrier).call({0, 1, 2}, Job::world, all_reduce, issued);
    job[3].process = c.process;
    job[3].presence = c.presence;
    if (c.presence == Presence::failed) job[3].reason = "bad step";
    const Diagnosis diagnosis = job.diagnose();
    REQUIRE(diagnosis.findings.size() == 1);
    CHECK(diagnosis.findings[0].kind == c.kind);
    CHECK(diagnosis.findings[0].severity == c.severity);
    CHECK_CONTAINS(diagnosis.findings[0].text, "; rank 3 (dp=1,tp=1) " + c.text + ".");
  }
}

TEST_CASE("the last mark and a rank without calls are named") {
  Job job{1, 2};
  job.call({0}, Job::tp, barrier, issued);
  job[1].marks.push_back({.sequence = 1, .time = 0, .text = "step 12"});
  job[1].calls_made = 1;
  CHECK_CONTAINS(lines(job.diagnose()),
                 "rank 1 (dp=0,tp=1) runs outside rankmesh and has made no call; the last mark is "
                 "\"step 12\".");
}

TEST_CASE("a process that is stopped in the call of the others is what they wait for") {
  Job job{2, 2};
  job.call(job.all(), Job::world, barrier, inside);
  job[1].process = Process::stopped;
  job[1].calls.back().begin = 95 * second;
  CHECK_CONTAINS(lines(job.diagnose()),
                 "rank 1 (dp=0,tp=1) is stopped by a signal or a debugger in world.barrier(), call "
                 "1, which began 5.0 s ago.");
}

TEST_CASE("if all processes are stopped or have ended, the question is what they were in before") {
  for (const Process process : {Process::stopped, Process::ended}) {
    Job job{2, 2};
    job.call({0, 1, 2}, Job::world, barrier, issued);
    for (Record& record : job.records) record.process = process;
    const Diagnosis diagnosis = job.diagnose();
    REQUIRE(diagnosis.findings.size() == 1);
    CHECK(diagnosis.findings[0].ranks == RankSet::parse("3"));
    CHECK(diagnosis.findings[0].waiting == RankSet::parse("0-2"));
    CHECK(diagnosis.findings[0].severity == Finding::Severity::note);
  }
}

TEST_CASE("the first call in which the members of a group differ") {
  Job job{2, 4};
  job.call(job.all(), Job::tp, all_reduce);
  for (const std::size_t rank : job.all())
    job.call({rank}, Job::tp, rank % 4 == 2 ? barrier : all_reduce, inside);
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  const Finding& finding = diagnosis.findings[0];
  CHECK(finding.kind == Finding::Kind::different_calls);
  CHECK(finding.ranks == RankSet::parse("0-7"));
  CHECK(finding.text ==
        "The members of 2 groups of tp differ in call 2: ranks 0-1,3-5,7 (6 ranks) called "
        "tp.all_reduce(8 x float32, sum); ranks 2 (dp=0,tp=2) and 6 (dp=1,tp=2) called "
        "tp.barrier().");
  REQUIRE(finding.steps.size() == 2);
  CHECK(finding.steps[1].ranks == RankSet::parse("2,6"));
}

TEST_CASE("a call that was skipped or made twice shows in the calls that follow") {
  Job skipped{1, 3};
  skipped.call({0, 1}, Job::tp, all_reduce, ended, true).call(skipped.all(), Job::tp, barrier);
  CHECK_CONTAINS(lines(skipped.diagnose()),
                 "rank 2 (dp=0,tp=2) called tp.barrier() (the others made this call as call 2: a "
                 "call may be missing here).");
  Job twice{1, 3};
  twice.call({2}, Job::tp, all_reduce, ended, true).call(twice.all(), Job::tp, barrier);
  CHECK_CONTAINS(lines(twice.diagnose()),
                 "(followed by the call of the others: this call may be one too many)");
}

TEST_CASE("v-forms match despite their counts, other calls do not") {
  for (const bool is_v : {true, false}) {
    Job job{1, 2};
    for (const std::size_t rank : job.all()) {
      CallDescriptor call = collective(Operation::all_gather, static_cast<std::int64_t>(rank));
      if (is_v) call.kind |= CallDescriptor::blocks;
      job.call({rank}, Job::tp, call);
    }
    CHECK(job.diagnose().has_error() == !is_v);
  }
}

TEST_CASE("the same call in different groups is not compared") {
  Job job{2, 2};
  job.call({0, 1}, Job::tp, all_reduce).call({2, 3}, Job::tp, barrier);
  CHECK(!job.diagnose().has_error());
}

TEST_CASE("rooted operations wait only for what they need") {
  for (const Operation operation : {Operation::broadcast, Operation::scatter}) {
    Job job{1, 4};
    job.call({2}, Job::tp, collective(operation, 8, 3), issued);
    CHECK(job.diagnose().ranks[2].waits_for == RankSet::parse("3"));
    CHECK(job.diagnose().ranks[2].is_certain);
    job.call({3}, Job::tp, collective(operation, 8, 3), issued);
    CHECK(job.diagnose().ranks[2].waits_for.empty());
    CHECK(job.diagnose().ranks[3].waits_for == RankSet::parse("0-1"));
    CHECK(!job.diagnose().ranks[3].is_certain);
  }
  for (const Operation operation : {Operation::reduce, Operation::gather}) {
    Job job{1, 4};
    job.call({2, 3}, Job::tp, collective(operation, 8, 3), issued);
    CHECK(!job.diagnose().ranks[2].is_certain);
    CHECK(job.diagnose().ranks[3].waits_for == RankSet::parse("0-1"));
    CHECK(job.diagnose().ranks[3].is_certain);
  }
}

TEST_CASE("scans wait for the members before them, and perhaps for the others") {
  Job job{1, 4};
  job.call({2}, Job::tp, collective(Operation::scan, 8), issued);
  CHECK(job.diagnose().ranks[2].waits_for == RankSet::parse("0-1"));
  CHECK(job.diagnose().ranks[2].is_certain);
  job.call({0, 1}, Job::tp, collective(Operation::scan, 8), issued);
  CHECK(job.diagnose().ranks[2].waits_for == RankSet::parse("3"));
  CHECK(!job.diagnose().ranks[2].is_certain);
  CHECK(!job.diagnose().ranks[0].is_certain);
}

TEST_CASE("asynchronous calls count only if the rank waits for them") {
  Job job{1, 2};
  job.call({0}, Job::tp, all_reduce, issued, true);
  CHECK(job.diagnose().ranks[0].waits_for.empty());
  CHECK(job.diagnose().findings[0].kind == Finding::Kind::progress);
  for (const char* text : {"tp.all_reduce, call 1", "tp.all_reduce(8 x float32, sum), call 1"}) {
    job[0].wait = Wait{text, 90 * second};
    CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("1"));
    CHECK(job.diagnose().ranks[0].since == 90 * second);
  }
  job[0].wait = Wait{"tp.all_reduce, call 11", 90 * second};
  CHECK(job.diagnose().ranks[0].waits_for.empty());
}

TEST_CASE("a rank that made the call without waiting must come back to rankmesh") {
  Job job{1, 2};
  job.call({0}, Job::tp, all_reduce, issued).call({1}, Job::tp, all_reduce, issued, true);
  CHECK_CONTAINS(lines(job.diagnose()),
                 "Rank 0 (dp=0,tp=0) may wait for rank 1 (dp=0,tp=1) in tp.all_reduce(8 x float32, "
                 "sum), call 1; rank 1 (dp=0,tp=1) runs outside rankmesh since it issued "
                 "tp.all_reduce(8 x float32, sum), call 1.");
}

TEST_CASE("calls of a captured graph are not waited for") {
  Job job{1, 2};
  job.add(0, Job::tp, all_reduce, issued).is_captured = true;
  CHECK(job.diagnose().ranks[0].activity == Activity::outside);
}

TEST_CASE("a member of new_group() is waited for") {
  Job job{2, 2};
  job[1].wait = Wait{"the agreement before new_group", 50 * second, 5, RankSet::parse("1,3")};
  job.call({3}, Job::dp, all_reduce, issued);
  const Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.ranks[1].waits_for == RankSet::parse("3"));
  CHECK(diagnosis.ranks[3].waits_for == RankSet::parse("1"));
  CHECK_CONTAINS(lines(diagnosis), "error circle [1,3]");
}

TEST_CASE("a rank without a meeting waits for the ranks that it names") {
  Job job{1, 3};
  job[0].wait = Wait{"read of message 1", 50 * second, 0, RankSet::parse("2")};
  job[1].wait = Wait{"read of message 1", 50 * second, 0, RankSet::parse("2")};
  CHECK(job.diagnose().ranks[1].waits_for == RankSet::parse("2"));
  CHECK_CONTAINS(lines(job.diagnose()), "rank 2 (dp=0,tp=2) runs outside rankmesh");
  job[0].wait = Wait{"read of message 1", 50 * second, 0, RankSet::parse("5")};
  CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("5"));
  job[0].wait = Wait{"something unknown", 50 * second};
  CHECK(job.diagnose().ranks[0].waits_for.empty());
}

TEST_CASE("a wait for a rank outside rankmesh is a warning after ten seconds") {
  for (const Time waited : {9 * second, 11 * second}) {
    Job job{2, 2};
    job.call({0}, Job::tp, barrier, issued).call({2}, Job::tp, barrier, issued);
    job[0].calls.back().begin = 100 * second - waited;
    const Diagnosis diagnosis = job.diagnose();
    REQUIRE(diagnosis.findings.size() == 1);
    CHECK(diagnosis.findings[0].kind == Finding::Kind::waits);
    CHECK(diagnosis.findings[0].ranks == RankSet::parse("1,3"));
    CHECK(diagnosis.findings[0].severity ==
          (waited > 10 * second ? Finding::Severity::warning : Finding::Severity::note));
  }
}

TEST_CASE("all is well") {
  Job job{2, 2};
  job.call(job.all(), Job::world, all_reduce);
  CHECK(lines(job.diagnose()) ==
        "note progress [] No rank waits for another rank: 4 ranks are outside rankmesh.\n");
  for (Record& record : job.records) record.presence = Presence::closed;
  CHECK(lines(job.diagnose()) ==
        "note progress [] No rank waits for another rank: 4 ranks are finished: the mesh is "
        "closed.\n");
  CHECK(rankmesh::record::diagnose({}).findings.empty());
}

TEST_CASE("several findings: errors first") {
  Job job{2, 2};
  job.call({0}, Job::tp, all_reduce, inside).call({1}, Job::tp, barrier, inside);
  job.call({2}, Job::tp, barrier, issued);
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 2);
  CHECK(diagnosis.findings[0].kind == Finding::Kind::different_calls);
  CHECK(diagnosis.findings[1].kind == Finding::Kind::waits);
}

TEST_CASE("random records are diagnosed without an error") {
  std::mt19937 random{7};
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  for (int round = 0; round < 400; ++round) {
    Job job{2, 3};
    for (Record& record : job.records) {
      record.presence = static_cast<Presence>(below(4));
      record.process = static_cast<Process>(below(5));
      record.calls_made = below(40);
      if (below(4) == 0) record.groups[below(3)].ranks = RankSet::range(below(9), below(9));
      if (below(4) == 0) record.groups.erase(record.groups.begin());
      if (below(4) == 0)
        record.wait = Wait{below(2) == 0 ? "close()" : "tp.barrier, call 1", 3, below(3),
                           RankSet::range(below(9), below(9))};
      for (std::uint32_t i = below(20); i > 0; --i) {
        CallDescriptor descriptor =
            message(static_cast<Operation>(below(12)), below(7), below(3), below(3), below(7));
        descriptor.detail |= std::uint64_t{below(2)} << 48;
        record.calls.push_back(
            {.sequence = below(30),
             .state = static_cast<rankmesh::record::State>(1 + below(4)),
             .carrier = static_cast<Carrier>(below(4)),
             .is_async = below(3) == 0,
             .is_captured = below(9) == 0,
             .group = below(5),
             .number = below(6),
             .descriptor = descriptor,
             .begin = below(2) == 0 ? std::optional<Time>{below(200)} : std::nullopt});
      }
      if (below(9) == 0) record.rank = below(9);
    }
    CHECK(!job.diagnose().findings.empty());
  }
}

TEST_CASE("durations for people") {
  CHECK(duration_text(-5) == "0 us");
  CHECK(duration_text(350'000) == "350 us");
  CHECK(duration_text(350'000'000) == "350 ms");
  CHECK(duration_text(12'345'000'000) == "12.3 s");
  CHECK(duration_text(125 * second) == "2 min 5 s");
  CHECK(duration_text(3 * 3600 * second + 5 * 60 * second) == "3 h 5 min");
}

}  // namespace rankmesh_test::diagnosis_test
