// SPDX-License-Identifier: BSD-3-Clause
#include "report/reports.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "record/records.hpp"
#include "report/write.hpp"
#include "support/checks.hpp"

namespace rankmesh_test::trace_test {

using nlohmann::json;
using rankmesh::record::Process;
using rankmesh::report::Format;
using rankmesh::report::trace;
using enum rankmesh::record::State;

namespace {

Job skipped_call() {
  Job job{2, 2};
  job.call(job.all(), Job::dp, collective(Operation::barrier));
  job[3].calls.back().end = 87 * second;
  job[3].marks.push_back({.sequence = 2, .time = 88 * second, .text = "step 12"});
  job[3].process = Process::sleeping;
  job.call({2}, Job::tp, collective(Operation::all_reduce), issued);
  job[2].calls.back().begin = 99 * second;
  return job;
}

}  // namespace

TEST_CASE("text: the ranks, then the diagnosis") {
  CHECK(
      to_string(trace(skipped_call().records), Format::text) ==
      "mesh dp=2,tp=2   4 of 4 ranks on 2 hosts\n"
      "\n"
      "  rank  coordinates  host    process  state     what it is in                               "
      " "
      "   for\n"
      "     0  dp=0,tp=0    node-a      100  running   outside rankmesh since dp.barrier(), call "
      "1\n"
      "     1  dp=0,tp=1    node-a      101  running   outside rankmesh since dp.barrier(), call "
      "1\n"
      "     2  dp=1,tp=0    node-b      102  running   in tp.all_reduce(8 x float32, sum), call 1 "
      "   1.0 s\n"
      "     3  dp=1,tp=1    node-b      103  sleeping  outside rankmesh since dp.barrier(), call 1 "
      " 13.0 s\n"
      "\n"
      "  note: Rank 2 (dp=1,tp=0) waits for rank 3 (dp=1,tp=1) in tp.all_reduce(8 x float32, "
      "sum), call 1;\n"
      "    rank 3 (dp=1,tp=1) sleeps outside rankmesh since dp.barrier(), call 1, which ended "
      "13.0 s ago;\n"
      "    the last mark is \"step 12\".\n");
}

TEST_CASE("CSV: the ranks") {
  const std::string text = to_string(trace(skipped_call().records), Format::csv);
  CHECK(text.starts_with(
      "mesh,key,rank,coordinates,host,process_id,process,activity,text,seconds,waits_for\n"));
  CHECK_CONTAINS(text,
                 "\"dp=2,tp=2\",0000000000000007,2,\"dp=1,tp=0\",node-b,102,running,call,\"in "
                 "tp.all_reduce(8 x float32, sum), call 1\",1,3\n");
}

TEST_CASE("JSON: ranks and findings as values") {
  const json found = json::parse(to_string(trace(skipped_call().records), Format::json));
  CHECK(found["schema"] == "rankmesh.trace/1");
  REQUIRE(found["meshes"].size() == 1);
  const json& mesh = found["meshes"][0];
  CHECK(mesh["mesh"] == "dp=2,tp=2");
  CHECK(mesh["has_error"] == false);
  CHECK(mesh["ranks"][3]["seconds"] == 13.0);
  CHECK(mesh["ranks"][3]["last_mark"] == "step 12");
  CHECK(mesh["ranks"][3]["process"] == "sleeping");
  CHECK(mesh["ranks"][0]["seconds"] == nullptr);
  CHECK(mesh["ranks"][2]["waits_for"] == "3");
  const json& finding = mesh["findings"][0];
  CHECK(finding["kind"] == "waits");
  CHECK(finding["severity"] == "note");
  CHECK(finding["waiting"] == "2");
  CHECK(finding["steps"][0]["waits_for"] == "3");
}

TEST_CASE("several meshes, in the order in which they were opened") {
  Job job = skipped_call();
  Job later{1, 2};
  std::vector<Record> records;
  for (Record& record : later.records) {
    record.mesh_key = 3;
    record.opened_at = 5;
    records.push_back(record);
  }
  records.insert(records.begin() + 1, job.records.begin(), job.records.end());
  const std::string text = to_string(trace(records), Format::text);
  CHECK(text.starts_with("mesh dp=2,tp=2   4 of 4 ranks"));
  CHECK_CONTAINS(text, "\n\nmesh dp=1,tp=2   2 of 2 ranks on 2 hosts\n");
  CHECK(json::parse(to_string(trace(records), Format::json))["meshes"].size() == 2);
}

TEST_CASE("text: the lines of the program that made the last calls") {
  auto job = skipped_call();
  job.records[1].last_lines = {"train.cpp:12", "train.cpp:40"};
  const std::string text = to_string(trace(job.records), Format::text);
  CHECK_CONTAINS(text, "for  last call made at\n");
  CHECK_CONTAINS(text, "  train.cpp:12 < train.cpp:40\n");
  const json ranks = json::parse(to_string(trace(job.records), Format::json))["meshes"][0]["ranks"];
  CHECK(ranks[0]["last_lines"].empty());
  CHECK(ranks[1]["last_lines"] == json{"train.cpp:12", "train.cpp:40"});

  Job many{4, 8};
  many.call(many.all(), Job::world, collective(Operation::barrier), issued);
  for (const std::size_t rank : many.all())
    many.records[rank].last_lines = {rank == 9 ? "a.cpp:1" : "b.cpp:2"};
  const std::string lines = to_string(trace(many.records), Format::text);
  CHECK_CONTAINS(lines, "  a.cpp:1\n");  // a rank at another place has a line of its own
  CHECK_CONTAINS(lines, "  b.cpp:2\n");
}

TEST_CASE("text: many ranks that do the same share a line") {
  Job job{4, 8};
  job.call(job.all(), Job::world, collective(Operation::barrier));
  for (const std::size_t rank : job.all())
    if (rank != 9) job.call({rank}, Job::world, collective(Operation::all_reduce), issued);
  const std::string text = to_string(trace(job.records), Format::text);
  CHECK_CONTAINS(text,
                 "  ranks      number  host     state    what they are in                        "
                 "        for\n"
                 "  0-8,10-31      31  2 hosts  running  in world.all_reduce(8 x float32, sum), "
                 "call 2\n"
                 "  9               1  node-a   running  outside rankmesh since world.barrier(), "
                 "call 1\n");
  CHECK_CONTAINS(text, "  note: Ranks 0-8,10-31 (31 ranks) wait for rank 9 (dp=1,tp=1) in");
}

TEST_CASE("text: a mesh has at most 100 lines") {
  Job job{1, 120};
  for (const std::size_t rank : job.all())
    for (std::size_t i = 0; i <= rank; ++i)
      job.call({rank}, Job::dp, collective(Operation::barrier));
  CHECK_CONTAINS(to_string(trace(job.records), Format::text),
                 "  20 more lines are left out; JSON and CSV have them\n");
}

TEST_CASE("no records, and a diagnosis that is already known") {
  CHECK(to_string(trace(std::vector<Record>{}), Format::text).empty());
  CHECK(to_string(trace(std::vector<std::vector<Record>>{}, {}), Format::csv).starts_with("mesh,"));
  const Job job = skipped_call();
  CHECK(to_string(trace({job.records}, {job.diagnose()}), Format::json) ==
        to_string(trace(job.records), Format::json));
}

}  // namespace rankmesh_test::trace_test
