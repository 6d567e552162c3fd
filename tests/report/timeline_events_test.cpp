// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "record/synthetic_job.hpp"
#include "report/document.hpp"
#include "report/timeline.hpp"

using namespace rankmesh;
using namespace rankmesh::test;
using Json = rankmesh::report::Json;

namespace {

const CallDescriptor a_barrier = descriptor_of(Operation::barrier);

Json events_of(const std::vector<Record>& records) {
  std::string text;
  report::write_trace_events([&](std::string_view piece) { text += piece; }, records);
  return Json::parse(text).at("traceEvents");
}

/// Checks what the Trace Event Format asks for, and what viewers rely on.
void check_format(const Json& events) {
  std::map<std::pair<int, int>, double> last;             // of each thread
  std::map<std::pair<int, int>, std::vector<Time>> open;  // the ends of the events around
  std::map<int, std::vector<std::pair<char, double>>> flows;
  std::set<int> processes, threads;
  for (const Json& event : events) {
    const std::string phase = event.at("ph");
    const int pid = event.at("pid");
    processes.insert(pid);
    CHECK(pid > 0);
    if (phase == "M") {
      CHECK(event.at("args").size() == 1);
      continue;
    }
    const int tid = event.at("tid");
    threads.insert(tid);
    CHECK(tid > 0);
    const double time = event.at("ts");
    CHECK(time >= 0);
    CHECK(!event.at("name").get<std::string>().empty());
    const auto [place, is_new] = last.try_emplace({pid, tid}, time);
    CHECK(place->second <= time);
    place->second = time;
    if (phase == "X") {
      const double duration = event.at("dur");
      CHECK(duration >= 0);
      // As Perfetto calculates: events of a thread nest, or do not overlap.
      const auto begin = static_cast<Time>(time * 1000);
      const Time end = begin + static_cast<Time>(duration * 1000);
      auto& ends = open[{pid, tid}];
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      if (!ends.empty()) CHECK(end <= ends.back());
      ends.push_back(end);
    } else if (phase == "i") {
      CHECK(event.at("s") == "t");
    } else {
      CHECK((phase == "s" || phase == "f"));
      if (phase == "f") CHECK(event.at("bp") == "e");
      flows[event.at("id")].emplace_back(phase[0], time);
      // Inside the call that comes before it.
      REQUIRE(!open[{pid, tid}].empty());
      CHECK(static_cast<Time>(time * 1000) <= open[{pid, tid}].back());
    }
  }
  for (auto& [id, ends] : flows) {
    REQUIRE(ends.size() == 2);
    if (ends[0].first != 's') std::swap(ends[0], ends[1]);
    CHECK(ends[0].first == 's');
    CHECK(ends[1].first == 'f');
    CHECK(ends[0].second < ends[1].second);
  }
  for (const int process : processes) CHECK(!threads.contains(process));
}

std::vector<Json> of_phase(const Json& events, const std::string& phase) {
  std::vector<Json> result;
  for (const Json& event : events)
    if (event.at("ph") == phase) result.push_back(event);
  return result;
}

}  // namespace

TEST_CASE("a job without records is a valid trace") { CHECK(events_of({}).empty()); }

TEST_CASE("calls become complete events with arguments") {
  SyntheticJob job{2, 2};
  job.add(0, descriptor_of(Operation::all_gather, 12), 1'000'000, 1'040'500);
  job.add(1, descriptor_of(Operation::all_gather, 12), 1'030'000, 1'040'000);
  job.mark(1, 1'050'000, "step </script> \xff");
  const Json events = events_of(job.records);
  check_format(events);
  auto calls = of_phase(events, "X");
  REQUIRE(calls.size() == 3);  // with the part of the first call after its wait
  CHECK(calls[0].at("name") == "dp.all_gather");
  CHECK(calls[0].at("ts") == 0);
  CHECK(calls[0].at("dur") == 40.5);
  const Json& args = calls[0].at("args");
  CHECK(args.at("call") == "dp.all_gather(12 x float32), call 1");
  CHECK(args.at("group") == "dp");
  CHECK(args.at("group_size") == 2);
  CHECK(args.at("members") == "0-1");
  CHECK(args.at("number") == 1);
  CHECK(args.at("count") == 12);
  CHECK(args.at("bytes") == 96);
  CHECK(args.at("type") == "float32");
  CHECK(args.at("carrier") == "shm");
  CHECK(args.at("state") == "ended");
  CHECK(args.at("time") == "recorded");
  const auto marks = of_phase(events, "i");
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].at("ts") == 50);
  CHECK(marks[0].at("name") == "step </script> \xEF\xBF\xBD");
}

TEST_CASE("calls over transports of the program have their names") {
  SyntheticJob job{1, 1};
  job.records[0].transports = {"ucc", "gloo"};
  job.add(0, a_barrier, 1'000'000, 1'040'000).carrier = record::program_carrier(1);
  const auto calls = of_phase(events_of(job.records), "X");
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].at("args").at("carrier") == "gloo");
}

TEST_CASE("arrows lead from the last member to the others") {
  SyntheticJob job{3, 3};
  job.add(0, a_barrier, 1'000'000, 1'040'000);
  job.add(1, a_barrier, 1'030'000, 1'040'000);
  job.add(2, a_barrier, 1'010'000, 1'040'000);
  const Json events = events_of(job.records);
  check_format(events);
  const auto starts = of_phase(events, "s");
  REQUIRE(starts.size() == 2);
  for (const Json& start : starts) {
    CHECK(start.at("tid") == 2);
    CHECK(start.at("ts") == 30);
  }
  CHECK(of_phase(events, "f").size() == 2);
  // The others' calls are divided where the arrow arrives.
  std::multiset<std::pair<int, double>> rests;
  for (const Json& event : of_phase(events, "X"))
    if (event.at("name") == "last member arrived")
      rests.emplace(event.at("tid").get<int>(), event.at("ts").get<double>());
  CHECK(rests == std::multiset<std::pair<int, double>>{{1, 30.001}, {3, 30.001}});
}

TEST_CASE("roots, messages, and members that are missing") {
  SyntheticJob job{3, 3};
  const auto broadcast = descriptor_of(Operation::broadcast, 4, 1);
  const auto reduce = descriptor_of(Operation::reduce, 4, 0);
  for (std::size_t r : {0U, 1U, 2U}) {
    job.add(r, broadcast, 1'000'000 + static_cast<Time>(r) * 1000, 1'010'000);
    job.add(r, reduce, 1'020'000 + static_cast<Time>(r) * 1000, 1'030'000);
  }
  job.add(2, descriptor_of(Operation::send, 4, 0), 1'040'000, 1'050'000);
  job.add(0, descriptor_of(Operation::recv, 4, 2), 1'045'000, 1'060'000);
  for (std::size_t r : {0U, 1U}) job.add(r, a_barrier, 1'070'000, {}, State::issued);
  const Json events = events_of(job.records);
  check_format(events);
  std::multiset<std::pair<double, int>> starts;
  for (const Json& start : of_phase(events, "s"))
    starts.emplace(start.at("ts").get<double>(), start.at("tid").get<int>());
  // The broadcast: from its root to two; the reduction: from the last to the root; the message.
  CHECK(starts == std::multiset<std::pair<double, int>>{{1, 2}, {1, 2}, {22, 3}, {40, 3}});
  std::size_t not_over = 0;
  for (const Json& call : of_phase(events, "X")) {
    if (call.at("name") != "dp.barrier (not over)") continue;
    ++not_over;
    CHECK(call.at("cname") == "terrible");
    CHECK(call.at("dur") == (1'000'000'000 - 1'070'000) / 1e3);
  }
  CHECK(not_over == 2);
}

TEST_CASE("calls without times lie between those with times, in order") {
  SyntheticJob job{1};
  job.add(0, a_barrier, 1'000'000, 1'010'000);
  for (int i = 0; i < 9; ++i) job.add(0, a_barrier);
  job.mark(0, 1'100'000, "half");
  for (int i = 0; i < 5; ++i) job.add(0, a_barrier);
  job.add(0, a_barrier, 1'150'000);
  const Json events = events_of(job.records);
  check_format(events);
  const auto calls = of_phase(events, "X");
  REQUIRE(calls.size() == 16);
  for (std::size_t i = 1; i < 15; ++i) {
    CHECK(calls[i].at("args").at("time") == "estimated");
    CHECK(calls[i].at("args").at("number") == i + 1);
    const double time = calls[i].at("ts");
    CHECK((i < 10 ? time >= 10 && time < 100 : time >= 100 && time < 150));
  }
  CHECK(calls[15].at("args").at("time") == "recorded");
  CHECK(calls[15].at("args").at("end") == "estimated");
}

TEST_CASE("a member that did not wait came when the others left") {
  SyntheticJob job{2, 2};
  for (std::size_t r : {0U, 1U}) job.add(r, a_barrier, 1'000'000, 1'001'000);
  job.add(0, a_barrier, 1'010'000, 1'900'000);
  job.add(1, a_barrier);
  for (std::size_t r : {0U, 1U}) job.add(r, a_barrier, 2'000'000, 2'001'000);
  const Json events = events_of(job.records);
  check_format(events);
  std::vector<double> estimated;
  for (const Json& call : of_phase(events, "X"))
    if (call.contains("args") && call.at("args").at("time") == "estimated")
      estimated.push_back(call.at("ts"));
  CHECK(estimated == std::vector<double>{899.5});
  CHECK(of_phase(events, "s").size() == 3);
}

TEST_CASE("asynchronous calls have threads of their own where they overlap") {
  SyntheticJob job{1};
  const auto reduce = descriptor_of(Operation::all_reduce, 4);
  for (Time i = 0; i < 4; ++i) job.add(0, reduce, i * 1000, 2500 + i * 1000).is_async = true;
  job.add(0, a_barrier, 3'500, 9'000);
  const Json events = events_of(job.records);
  check_format(events);
  std::set<int> threads;
  for (const Json& call : of_phase(events, "X")) threads.insert(call.at("tid").get<int>());
  CHECK(threads == std::set<int>{1, 2, 3, 4});

  // On one NCCL communicator they run one after the other.
  for (auto& call : job.records[0].calls)
    if (call.is_async) call.carrier = record::Carrier::nccl;
  threads.clear();
  const Json serial = events_of(job.records);
  check_format(serial);
  for (const Json& call : of_phase(serial, "X")) threads.insert(call.at("tid").get<int>());
  CHECK(threads == std::set<int>{1, 2});
}

TEST_CASE("the wait inside a call has no bar beside that of the call") {
  SyntheticJob job{1};
  record::Call& call = job.add(0, descriptor_of(Operation::barrier), 1'000);
  call.state = record::State::issued;
  call.end.reset();
  job.records[0].wait = record::Wait{"all.barrier(), call 1", 2'000};
  CHECK(of_phase(events_of(job.records), "X").size() == 1);
}

TEST_CASE("a wait outside calls is an event, rows are sorted by coordinates") {
  SyntheticJob job{12, 4};
  for (auto& record : job.records) {
    record.node = record.node == 0 ? 2 : record.node == 2 ? 0 : 1;
    record.wait = record::Wait{"close()", 5'000};
  }
  std::swap(job.records[0], job.records[11]);
  const Json events = events_of(job.records);
  check_format(events);
  CHECK(of_phase(events, "X").size() == 12);
  CHECK(of_phase(events, "X")[0].at("name") == "close() (not over)");
  std::vector<std::string> names;
  for (const Json& event : events)
    if (event.at("name") == "thread_name") names.push_back(event.at("args").at("name"));
  REQUIRE(names.size() == 12);
  CHECK(names[0] == "rank 8 (dp=8)");
  CHECK(names[1] == "rank 9 (dp=9)");
  CHECK(names[2] == "rank 10 (dp=10)");
}
