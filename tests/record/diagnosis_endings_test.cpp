// SPDX-License-Identifier: BSD-3-Clause
// What is said of ranks that close the mesh, have closed it, or have ended.
#include <doctest/doctest.h>

#include <string>

#include "record/diagnosis.hpp"
#include "record/records.hpp"
#include "support/checks.hpp"

namespace rankmesh_test::diagnosis_endings_test {

using rankmesh::RankSet;
using rankmesh::record::Presence;
using rankmesh::record::Process;
using rankmesh::record::Wait;
using enum rankmesh::record::State;

namespace {

const CallDescriptor barrier = collective(Operation::barrier);
const CallDescriptor all_reduce = collective(Operation::all_reduce);

}  // namespace

TEST_CASE("ranks in close() wait for those that have not closed the mesh") {
  Job job{2, 2};
  for (const std::size_t rank : {0U, 1U, 3U})
    job[rank].wait = Wait{"close()", 50 * second, 77, RankSet::range(0, 4)};
  CHECK_CONTAINS(lines(job.diagnose()),
                 "Ranks 0 (dp=0,tp=0), 1 (dp=0,tp=1) and 3 (dp=1,tp=1) wait for rank 2 "
                 "(dp=1,tp=0) in close()");
  job[1].wait.reset();
  job[1].presence = Presence::closed;
  CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("2"));
  // Rank 2 waits too, but at a later point, as when ranks close two meshes in different orders.
  job[2].wait = Wait{"close()", 50 * second, 78, RankSet::range(0, 4)};
  CHECK(job.diagnose().ranks[2].waits_for == RankSet::parse("0,3"));
  CHECK_CONTAINS(lines(job.diagnose()), "error circle");
}

TEST_CASE("a short wait at a meeting proves no circle, because a rank may have been there before") {
  Job job{1, 2};
  job.call({1}, Job::tp, all_reduce, issued);
  job[0].read_at = 51 * second;
  job[0].wait = Wait{"close()", 51 * second - 1'000'000, 5, RankSet::range(0, 2)};
  CHECK(!job.diagnose().ranks[0].is_certain);
  CHECK(!job.diagnose().has_error());
}

TEST_CASE("ranks that have ended early, the fewest first") {
  Job job{2, 2};
  job.call(job.all(), Job::world, all_reduce);
  job[2].process = Process::ended;
  CHECK(lines(job.diagnose()) ==
        "error progress [2] Rank 2 (dp=1,tp=0) has ended outside rankmesh, after "
        "world.all_reduce(8 x float32, sum), call 1.\n");
  for (const int rank : {0, 1, 3}) {
    job[rank].presence = Presence::failed;
    job[rank].reason = "rank 2 has ended";
    job[rank].process = Process::ended;
  }
  const std::string text = lines(job.diagnose());
  CHECK_CONTAINS(text, "error progress [0-3] Rank 2 (dp=1,tp=0) has ended outside rankmesh");
  CHECK_CONTAINS(text,
                 "1. Ranks 0 (dp=0,tp=0), 1 (dp=0,tp=1) and 3 (dp=1,tp=1) have left the mesh "
                 "by an exception: rank 2 has ended.\n");
  // Someone has ended the job.
  for (Record& record : job.records) record.presence = Presence::open;
  CHECK_CONTAINS(lines(job.diagnose()), "note progress [] No rank waits for another rank");
}

TEST_CASE("members that closed the mesh after different numbers of calls") {
  Job job{1, 3};
  job.call(job.all(), Job::tp, barrier);
  job.call({0}, Job::tp, collective(Operation::broadcast, 8, 0));
  for (Record& record : job.records) record.presence = Presence::closed;
  CHECK_CONTAINS(lines(job.diagnose()),
                 "warning missing_call [1-2] All of these ranks have closed the mesh after "
                 "different numbers of collectives in the same group of tp: rank 0 (dp=0,tp=0) "
                 "made 2 calls; ranks 1 (dp=0,tp=1) and 2 (dp=0,tp=2) made 1 call.");
}

}  // namespace rankmesh_test::diagnosis_endings_test
