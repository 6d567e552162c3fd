// SPDX-License-Identifier: BSD-3-Clause
// Ranks that wait for each other.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "record/records.hpp"
#include "support/checks.hpp"

namespace rankmesh_test::diagnosis_circles_test {

using rankmesh::RankSet;
using rankmesh::record::Carrier;
using rankmesh::record::Diagnosis;
using rankmesh::record::Finding;
using enum rankmesh::record::State;

namespace {

const CallDescriptor barrier = collective(Operation::barrier);
const CallDescriptor all_reduce = collective(Operation::all_reduce);

}  // namespace

TEST_CASE("crossed orders of two groups are a circle, with the orders of both ranks") {
  Job job{2, 2};
  job.call(job.all(), Job::world, barrier).call(job.all(), Job::tp, barrier);
  job.call({0, 3}, Job::tp, all_reduce, issued).call({1, 2}, Job::dp, all_reduce, issued);
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  const Finding& finding = diagnosis.findings[0];
  CHECK(finding.kind == Finding::Kind::circle);
  CHECK(finding.severity == Finding::Severity::error);
  CHECK(finding.ranks == RankSet::parse("0-3"));
  REQUIRE(finding.steps.size() == 4);
  CHECK(finding.text ==
        "These ranks wait for each other, so none of them can go on: rank 0 (dp=0,tp=0) waits for "
        "rank 1 in tp.all_reduce, call 2; rank 1 (dp=0,tp=1) waits for rank 3 in dp.all_reduce, "
        "call 1; rank 3 (dp=1,tp=1) waits for rank 2 in tp.all_reduce, call 2; rank 2 (dp=1,tp=0) "
        "waits for rank 0 in dp.all_reduce, call 1. The ranks call these groups in different "
        "orders, or a call is missing on one of them. After tp.barrier, call 1, ranks 1 and 2 "
        "called dp.all_reduce, call 1, but ranks 0 and 3 called tp.all_reduce, call 2.");
  CHECK(finding.steps[0].text == "tp.all_reduce(8 x float32, sum), call 2");
}

TEST_CASE("a circle of one group says how many calls each member has made") {
  Job job{1, 4};
  job.call(job.all(), Job::tp, barrier).call({0, 1, 2}, Job::tp, all_reduce, issued);
  job[3].wait = rankmesh::record::Wait{"the close", 0, 7, RankSet::parse("0-3")};
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  CHECK(diagnosis.findings[0].kind == Finding::Kind::circle);
  CHECK_CONTAINS(diagnosis.findings[0].text,
                 "in the close. Ranks 0-2 have made 2 calls of tp, and rank 3 has made 1.");
}

TEST_CASE("calls on device memory that two ranks have issued in different orders") {
  for (const bool are_crossed : {true, false}) {
    Job job{1, 2};
    for (const std::size_t rank : job.all()) {
      const bool is_world_first = are_crossed && rank == 1;
      for (const std::size_t group :
           {is_world_first ? Job::world : Job::tp, is_world_first ? Job::tp : Job::world})
        job.add(rank, group, all_reduce, inside, true).carrier = Carrier::nccl;
    }
    const std::string text = lines(job.diagnose());
    if (!are_crossed) {
      CHECK_LACKS(text, "circle");
      continue;
    }
    CHECK_CONTAINS(text,
                   "warning circle [0-1] Two ranks have issued the same calls on device memory in "
                   "different orders: rank 0 (dp=0,tp=0) issued tp.all_reduce(8 x float32, sum), "
                   "call 1, then world.all_reduce(8 x float32, sum), call 1; rank 1 (dp=0,tp=1) "
                   "issued world.all_reduce(8 x float32, sum), call 1, then tp.all_reduce(8 x "
                   "float32, sum), call 1.");
  }
}

TEST_CASE("circles of three ranks, and ranks that wait for a circle") {
  // Three groups of two ranks each, in a ring, and the world.
  Job job{1, 4};
  const auto pair = [&](std::size_t a, std::size_t b, std::uint64_t identity) {
    for (const std::size_t rank : {a, b})
      job[rank].groups.push_back(
          {identity, {"pair"}, 2, RankSet::parse(std::to_string(a) + "," + std::to_string(b))});
  };
  pair(0, 1, 1);
  pair(1, 2, 2);
  pair(2, 0, 3);
  const auto call = [&](std::size_t rank, std::size_t group) {
    job.records[rank].calls.push_back({.sequence = 1, .group = group, .number = 1});
    job.records[rank].calls_made = 1;
  };
  call(0, 3);  // with 1
  call(1, 4);  // with 2
  call(2, 4);  // with 0
  job.call({3}, Job::world, barrier, issued);
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  CHECK(diagnosis.findings[0].steps.size() == 3);
  CHECK(diagnosis.findings[0].ranks == RankSet::parse("0-2"));
  CHECK(diagnosis.findings[0].waiting == RankSet::parse("3"));
  CHECK_CONTAINS(diagnosis.findings[0].text,
                 "1 more rank waits for them, directly or through other ranks: rank 3");
}

TEST_CASE("equal circles of several groups are one finding") {
  Job job{1, 6};
  for (std::size_t rank = 0; rank < 6; ++rank)
    for (const std::uint64_t identity : {10 + rank / 2, 20 + rank / 2})
      job[rank].groups.push_back({identity,
                                  {identity < 20 ? "a" : "b"},
                                  2,
                                  RankSet::range(static_cast<std::int64_t>(rank / 2 * 2), 2)});
  for (std::size_t rank = 0; rank < 6; ++rank) {
    job[rank].calls.push_back({.sequence = 1, .group = 3 + rank % 2, .number = 1});
    job[rank].calls_made = 1;
  }
  const Diagnosis diagnosis = job.diagnose();
  REQUIRE(diagnosis.findings.size() == 1);
  CHECK(diagnosis.findings[0].ranks == RankSet::parse("0-5"));
  CHECK_CONTAINS(diagnosis.findings[0].text,
                 "There are 2 more circles like this one, all together ranks 0-5 (6 ranks).");
}

}  // namespace rankmesh_test::diagnosis_circles_test
