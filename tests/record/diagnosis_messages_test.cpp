// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <string>

#include "record/records.hpp"
#include "support/checks.hpp"

namespace rankmesh_test::diagnosis_messages_test {

using rankmesh::RankSet;
using rankmesh::record::Diagnosis;
using rankmesh::record::Finding;
using rankmesh::record::Presence;
using enum rankmesh::record::State;
using enum rankmesh::Operation;

TEST_CASE("a receive waits for a send that was not made") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send, 1, 3));
  job.add(1, Job::tp, message(recv, 0, 3));
  job.add(1, Job::tp, message(recv, 0, 3), inside);
  const Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.ranks[1].waits_for == RankSet::parse("0"));
  CHECK(diagnosis.ranks[1].is_certain);
  CHECK_CONTAINS(lines(diagnosis),
                 "Rank 1 (dp=0,tp=1) waits for rank 0 (dp=0,tp=0) in tp.recv(8 x float32, from "
                 "member 0, tag 3); rank 0 (dp=0,tp=0) runs outside rankmesh since tp.send(8 x "
                 "float32, to member 1, tag 3).");
  job.add(0, Job::tp, message(send, 1, 3));
  CHECK(job.diagnose().ranks[1].waits_for.empty());
}

TEST_CASE("a message for which a rank has waited for a second is named with its tag") {
  Job job{1, 3};
  job.add(1, Job::tp, message(recv, 0, 23), inside).begin = 90 * second;
  job.add(2, Job::tp, message(send, 1, 5), inside).begin = 90 * second;
  CHECK_CONTAINS(lines(job.diagnose()),
                 "note message [0-2] Rank 1 (dp=0,tp=1) waits for tag 23 from rank 0 (dp=0,tp=0), "
                 "which has not sent it; rank 2 (dp=0,tp=2) waits with tag 5 for rank 1 "
                 "(dp=0,tp=1), which has not called the receive.");
  job[1].calls[0].begin = job[2].calls[0].begin = 100 * second - second / 2;
  CHECK(lines(job.diagnose()).find("has not sent it") == std::string::npos);
}

TEST_CASE("a send does not match a receive that was cancelled") {
  Job job{1, 2};
  job.add(1, Job::tp, message(recv, 0, 3), ended, true).is_cancelled = true;
  job.add(0, Job::tp, message(send, 1, 3), inside).begin = 90 * second;
  CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("1"));
  job.add(1, Job::tp, message(recv, 0, 3));
  CHECK(job.diagnose().ranks[0].waits_for.empty());
}

TEST_CASE("a send may wait for its receive; after a second it does") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send, 1), inside);
  CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("1"));
  CHECK(!job.diagnose().ranks[0].is_certain);
  job[0].calls[0].begin = 98 * second;
  CHECK(job.diagnose().ranks[0].is_certain);
}

TEST_CASE("a send without receive, while the receiver waits for the sender in a collective") {
  Job job{2, 1};
  job.add(0, Job::world, message(send, 1, 3), inside).begin = 90 * second;
  job.add(1, Job::world, collective(barrier), issued);
  const std::string text = lines(job.diagnose());
  CHECK_CONTAINS(text, "error circle [0-1] These ranks wait for each other");
  CHECK_CONTAINS(text,
                 "error message [0-1] Rank 0 (dp=0,tp=0) is in world.send(8 x float32, to member "
                 "1, tag 3), but rank 1 (dp=1,tp=0) has not called the matching receive; it is in "
                 "world.barrier(), call 1.");
}

// Rank 1 receives from both sides, and waits for one of the messages. Rank 0 waits for rank 1.
Job job_of_two_receives() {
  Job job{1, 3};
  job.add(1, Job::tp, message(recv, 0), issued, true);
  job.add(1, Job::tp, message(recv, 2), issued, true);
  job.add(0, Job::tp, message(recv, 1), inside).begin = 50 * second;
  return job;
}

TEST_CASE("a wait for one of several messages is a wait for this one") {
  Job job = job_of_two_receives();
  job[1].wait = rankmesh::record::Wait{.text = "tp.recv from rank 2 (tag 0)", .since = 50 * second};
  const Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.ranks[1].waits_for == RankSet::parse("2"));
  CHECK(lines(diagnosis).find("wait for each other") == std::string::npos);
  job[1].wait->text = "tp.recv from rank 0 (tag 0)";
  CHECK_CONTAINS(lines(job.diagnose()), "error circle [0-1] These ranks wait for each other");
}

TEST_CASE("a wait for any of several messages may end by each of them") {
  Job job = job_of_two_receives();
  job[1].wait = rankmesh::record::Wait{
      .text = "wait_any of 2 operations: tp.recv from rank 0 (tag 0); tp.recv from rank 2 (tag 0)",
      .since = 50 * second,
      .point = 9,
      .ranks = RankSet::parse("0-2")};
  const Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.ranks[1].waits_for == RankSet::parse("0,2"));
  CHECK(!diagnosis.ranks[1].is_certain);
  CHECK(lines(diagnosis).find("error") == std::string::npos);
}

TEST_CASE("a name that ends like another one is not that one") {
  Job job{2, 2};
  for (const std::size_t rank : {0, 1, 2, 3}) job[rank].groups[Job::tp].names = {"expt_dp"};
  job.add(0, Job::dp, collective(all_reduce), issued, true);
  job.add(0, Job::tp, collective(all_reduce), issued, true);
  job[0].wait = rankmesh::record::Wait{.text = "expt_dp.all_reduce(8 x float32, sum), call 1",
                                       .since = 50 * second};
  CHECK(job.diagnose().ranks[0].waits_for ==
        RankSet::parse("1"));  // not 2, which dp.all_reduce needs
}

TEST_CASE("a tag that differs is named") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send, 1, 3));
  job.add(1, Job::tp, message(recv, 0, 4), inside);
  CHECK_CONTAINS(lines(job.diagnose()),
                 "warning message [0-1] Rank 1 (dp=0,tp=1) is in tp.recv(8 x float32, from member "
                 "0, tag 4), but rank 0 (dp=0,tp=0) has not called the matching send. The sender "
                 "has called tp.send(8 x float32, to member 1, tag 3), which has no receive.");
}

TEST_CASE("two ranks that send before they receive") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send, 1), inside);
  job.add(1, Job::tp, message(send, 0), inside);
  CHECK_CONTAINS(lines(job.diagnose()),
                 "warning circle [0-1] These ranks probably wait for each other: rank 0 "
                 "(dp=0,tp=0) may wait for rank 1 in tp.send(8 x float32, to member 1, tag 0);");
  for (Record& record : job.records) record.calls[0].begin = 0;
  CHECK(job.diagnose().has_error());
}

TEST_CASE("messages of equal tags are matched in order, and their sizes compared") {
  Job job{1, 2};
  for (const std::int64_t count : {4, 8, 16}) job.add(0, Job::tp, message(send, 1, 7, count));
  for (const std::int64_t count : {4, 8}) job.add(1, Job::tp, message(recv, 0, 7, count));
  CHECK(!job.diagnose().has_error());
  job.add(1, Job::tp, message(recv, 0, 7, 12), inside);
  CHECK_CONTAINS(lines(job.diagnose()),
                 "error message [0-1] Message 3 from rank 0 (dp=0,tp=0) to rank 1 (dp=0,tp=1) has "
                 "different sizes at its ends: tp.send(16 x float32, to member 1, tag 7) and "
                 "tp.recv(12 x float32, from member 0, tag 7).");
}

TEST_CASE("messages of other tags, groups and directions do not match") {
  for (const auto& [group, tag] : {std::pair{Job::tp, 2}, std::pair{Job::world, 1}}) {
    Job job{1, 2};
    job.add(0, group, message(send, 1, static_cast<std::uint64_t>(tag)));
    job.add(1, Job::tp, message(send, 0, 1));
    job.add(1, Job::tp, message(recv, 0, 1), inside);
    CHECK(job.diagnose().ranks[1].is_certain);
  }
}

TEST_CASE("messages on device memory are matched by their order alone") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send, 1, 3)).descriptor.kind |= CallDescriptor::on_device;
  job.add(1, Job::tp, message(recv, 0, 4), inside).descriptor.kind |= CallDescriptor::on_device;
  CHECK(job.diagnose().ranks[1].waits_for.empty());
}

TEST_CASE("send_recv sends and receives in one call") {
  Job job{1, 3};
  for (const std::size_t rank : {0U, 1U})
    job.add(rank, Job::tp, message(send_recv, (rank + 1) % 3, 0, 8, (rank + 2) % 3), inside);
  const Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.ranks[0].waits_for == RankSet::parse("2"));
  CHECK(diagnosis.ranks[0].is_certain);
  CHECK(diagnosis.ranks[1].waits_for == RankSet::parse("2"));
  CHECK(!diagnosis.ranks[1].is_certain);
  job.add(2, Job::tp, message(send_recv, 0, 0, 8, 1), inside);
  CHECK(job.diagnose().findings[0].kind == Finding::Kind::progress);
}

TEST_CASE("send_recv may receive another size than it sends") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send_recv, 1, 0, 10, 1));
  job.add(1, Job::tp, message(send_recv, 0, 0, 20, 0));
  CHECK(job.diagnose().findings[0].kind == Finding::Kind::progress);
}

TEST_CASE("messages to itself are not waited for") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send_recv, 0, 0, 8, 0), inside);
  CHECK(job.diagnose().ranks[0].waits_for.empty());
}

TEST_CASE("messages that were left over when a rank closed the mesh") {
  Job job{1, 2};
  job.add(0, Job::tp, message(send, 1, 3));
  job.add(0, Job::tp, message(send, 1, 3));
  CHECK(job.diagnose().findings[0].kind == Finding::Kind::progress);
  job[1].presence = Presence::closed;
  CHECK_CONTAINS(lines(job.diagnose()),
                 "warning message [0-1] Rank 0 (dp=0,tp=0) sent 2 messages to rank 1 (dp=0,tp=1)"
                 " that have no matching receive: tp.send(8 x float32, to member 1, tag 3); rank "
                 "1 (dp=0,tp=1) has closed the mesh.");
  job[0].calls[0].state = inside;
  CHECK(job.diagnose().has_error());
}

TEST_CASE("if old messages have left a record, only open calls are matched") {
  Job job{1, 2};
  for (int i = 0; i < 6; ++i) job.add(0, Job::tp, message(send, 1));
  for (int i = 0; i < 4; ++i) job.add(1, Job::tp, message(recv, 0));
  job.add(1, Job::tp, message(recv, 0), inside);
  job.forget(0, 3);
  Diagnosis diagnosis = job.diagnose();
  CHECK(diagnosis.ranks[1].waits_for == RankSet::parse("0"));
  CHECK(!diagnosis.ranks[1].is_certain);
  CHECK(diagnosis.findings.size() == 1);
  job.add(0, Job::tp, message(send, 1), inside);
  CHECK(job.diagnose().ranks[1].waits_for.empty());
}

TEST_CASE("the other end has no record") {
  Job job{1, 3};
  job.add(1, Job::tp, message(recv, 0), inside);
  job.records.erase(job.records.begin());
  CHECK(job.diagnose().ranks[0].waits_for == RankSet::parse("0"));
  CHECK_CONTAINS(lines(job.diagnose()),
                 "Rank 1 (dp=0,tp=1) is in tp.recv(8 x float32, from member "
                 "0, tag 0) and may wait for it.");
}

}  // namespace rankmesh_test::diagnosis_messages_test
