// SPDX-License-Identifier: BSD-3-Clause
// Records that are missing, that lack old calls, or that make no sense.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "record/records.hpp"
#include "support/checks.hpp"

namespace rankmesh_test::diagnosis_incomplete_test {

using rankmesh::RankSet;
using rankmesh::record::Diagnosis;
using rankmesh::record::Finding;
using rankmesh::record::Process;
using enum rankmesh::record::State;

namespace {

const CallDescriptor barrier = collective(Operation::barrier);
const CallDescriptor all_reduce = collective(Operation::all_reduce);

}  // namespace

TEST_CASE("ranks without records are named, and are not accused") {
  Job job{2, 2};
  job.call({0, 1, 2}, Job::world, barrier, issued);
  job.records.pop_back();
  const Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.missing == RankSet::parse("3"));
  CHECK(diagnosis.ranks.size() == 3);
  CHECK(diagnosis.ranks[0].waits_for == RankSet::parse("3"));
  CHECK(!diagnosis.ranks[0].is_certain);
  CHECK_CONTAINS(lines(diagnosis),
                 "note no_record [3] There is no record of rank 3 here: it runs on another node, "
                 "or its process or its mesh has ended. Ranks 0 (dp=0,tp=0), 1 "
                 "(dp=0,tp=1) and 2 (dp=1,tp=0) are in world.barrier(), call 1 and may wait for "
                 "it.");
}

TEST_CASE("both ends of a send_recv may be one rank without a record") {
  Job job{1, 2};
  job.call({0}, Job::tp, message(Operation::send_recv, 1, 0, 8, 1), issued);
  job.records.pop_back();
  CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("1"));
}

TEST_CASE("ranks that wait for a rank that waits for one without a record") {
  Job job{2, 2};
  job.call({1}, Job::dp, barrier, issued);  // with 3, which has no record
  job.call({0}, Job::tp, barrier, issued);  // with 1
  job.call({0, 1, 2}, Job::world, barrier, State::ended);
  job.records.pop_back();
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  const Finding& finding = diagnosis.findings[0];
  CHECK(finding.kind == Finding::Kind::no_record);
  CHECK(finding.waiting == RankSet::parse("0-1"));
  CHECK(finding.text ==
        "There is no record of rank 3 here: it runs on another node, or its process or its mesh "
        "has ended. Rank 1 (dp=0,tp=1) is in dp.barrier(), call 1 and may wait "
        "for it. In turn, rank 0 (dp=0,tp=0) waits for rank 1 (dp=0,tp=1) in tp.barrier(), call "
        "1.");
}

TEST_CASE("a rank without a record for which nobody waits does not hide that all is well") {
  Job job{2, 2};
  job.call({0, 1, 2}, Job::world, barrier, State::ended);
  job.records.pop_back();
  CHECK(lines(job.diagnose()) ==
        "note progress [] No rank waits for another rank: 3 ranks are outside rankmesh.\n"
        "note no_record [3] There is no record of rank 3 here: it runs on another node, or its "
        "process or its mesh has ended.\n");
}

TEST_CASE("records that no longer have the old calls are compared where they overlap") {
  Job job{1, 3};
  for (int i = 0; i < 10; ++i) job.call(job.all(), Job::tp, all_reduce);
  job.call({0, 1}, Job::tp, barrier, issued);
  job.forget(0, 5).forget(1, 8).forget(2, 2);
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  CHECK(diagnosis.findings[0].ranks == RankSet::parse("2"));
  CHECK(diagnosis.ranks[0].is_certain);
  job[2].calls[7].descriptor = barrier;  // call 10, which rank 1 has too
  CHECK(job.diagnose().findings[0].kind == Finding::Kind::different_calls);
}

TEST_CASE("a rank whose record has no call of the group any more is only suspected") {
  Job job{2, 2};
  job.call(job.all(), Job::tp, barrier);
  for (int i = 0; i < 4; ++i) job.call({1, 3}, Job::dp, barrier);
  job.call({0}, Job::tp, barrier, issued);
  job.forget(1, 1);
  CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("1"));
  CHECK(!job.diagnose().ranks[0].is_certain);
}

TEST_CASE("a wait that began after the others were read says nothing about them") {
  Job job{1, 2};
  job.add(0, Job::tp, barrier, issued).begin = 60 * second;
  job[1].read_at = 50 * second;
  CHECK(job.diagnose().findings[0].kind == Finding::Kind::progress);
  job[1].process = Process::ended;  // it cannot have come since
  CHECK(job.diagnose().has_error());
}

TEST_CASE("a call that is newer than the records of its other members accuses nobody") {
  Job job{2, 2};
  job.add(2, Job::tp, barrier, issued).begin = 60 * second;
  job.call({0}, Job::dp, barrier, issued);
  job[3].read_at = 50 * second;
  const std::string text = lines(job.diagnose());
  CHECK_CONTAINS(text, "this call began after the records of its other members had been read");
  CHECK_LACKS(text, "no rank is missing");
}

TEST_CASE("a stopped rank on another node is found, although its record has no later time") {
  Job job{2, 2};
  job.add(2, Job::tp, barrier, issued).begin = 60 * second;
  job.call({0}, Job::dp, barrier, issued);
  job[3].process = Process::unknown;
  job[3].is_observed = false;
  job[3].read_at = 50 * second;  // its last time
  const Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.ranks[2].waits_for == RankSet::parse("3"));
  CHECK(diagnosis.findings[0].ranks == RankSet::parse("3"));
  CHECK(diagnosis.findings[0].waiting == RankSet::parse("0,2"));
}

TEST_CASE("a wait for more ranks than a job has lists none") {
  Job job{1, 2};
  for (Record& record : job.records) record.world_size = 5'000'000;
  job[0].wait = rankmesh::record::Wait{"close()", 50 * second, 5, RankSet::range(0, 5'000'000)};
  CHECK(job.diagnose().ranks[0].waits_for.empty());
}

TEST_CASE("records in any order, twice, or with nonsense in them") {
  Job job{2, 2};
  job.call({0, 1, 2}, Job::world, barrier, issued);
  const std::string text = lines(job.diagnose());
  std::swap(job.records[0], job.records[3]);
  job.records.push_back(job.records[1]);
  CHECK(lines(job.diagnose()) == text);
  job.records[1].calls.push_back({.group = 99, .number = 3});
  job.records[2].calls.push_back({.group = 1, .number = ~std::uint64_t{0}});
  job.records[2].groups[1].ranks = RankSet::range(0, std::int64_t{1} << 60);
  job.records[3].groups = {job.records[3].groups[0], job.records[3].groups[0]};
  job.records[3].rank = -5;
  job.records[0].world_size = -1;
  CHECK(!job.diagnose().findings.empty());
}

}  // namespace rankmesh_test::diagnosis_incomplete_test
