// SPDX-License-Identifier: BSD-3-Clause
// What a Recorder has written, read() reads.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "rankmesh/base/error.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/read.hpp"
#include "record/recorded_rank.hpp"
#include "support/checks.hpp"

using namespace rankmesh;
using rankmesh_test::call_of;
using rankmesh_test::facts_of_rank_1;
using rankmesh_test::own_record;
using rankmesh_test::RecordedRank;

#if !defined(CLONE_NEWTIME)
#define CLONE_NEWTIME 0x00000080
#endif

namespace {

record::Record read_own(std::uint64_t mesh_key = 0x1234) {
  const std::string path = own_record(mesh_key);
  return record::read(record::copy_observed({path, ::getpid(), mesh_key}), path);
}

}  // namespace

TEST_CASE("a record says what its rank does") {
  RecordedRank rank;
  rank.recorder->set_clock(3, 5'000'000'000, 12'345);
  rank.make(rank.tp, call_of(Operation::all_reduce), 1);
  rank.recorder->mark("step 12");
  const auto inside = rank.begin(rank.dp, call_of(Operation::barrier, 0), 7, record::State::inside);
  rank.recorder->publish(
      {.text = "close()", .point = 77, .ranks = RankSet::of(std::vector{Rank{0}, Rank{1}})});

  const record::Record found = read_own();
  CHECK(found.mesh_key == 0x1234);
  CHECK(found.mesh == "dp=2,tp=2");
  CHECK(found.world_size == 4);
  CHECK(found.rank == Rank{1});
  CHECK(found.coordinates == "dp=0,tp=1");
  CHECK(found.host == "node-a");
  CHECK(found.node == 3);
  CHECK(found.clock_error == 12'345);
  CHECK(found.process_id == ::getpid());
  CHECK(found.presence == record::Presence::open);
  CHECK(found.process == record::Process::running);
  CHECK(found.has_all_times);
  CHECK(found.calls_made == 3);

  REQUIRE(found.groups.size() == 2);
  CHECK(found.groups[0].names == std::vector<std::string>{"tp"});
  CHECK(found.groups[1].ranks == RankSet::of(std::vector{Rank{1}, Rank{3}}));
  CHECK(found.groups[1].size == 2);
  CHECK(found.groups[0].identity != found.groups[1].identity);

  REQUIRE(found.calls.size() == 2);
  const record::Call& first = found.calls[0];
  CHECK(first.state == record::State::ended);
  CHECK(first.sequence == 1);
  CHECK(first.number == 1);
  CHECK(first.carrier == record::Carrier::shared_memory);
  CHECK(record::to_string(found, first) == "tp.all_reduce(4 x float32, sum), call 1");
  const record::Call& last = found.calls[1];
  CHECK(last.state == record::State::inside);
  CHECK(last.group == 1);
  CHECK_FALSE(last.end.has_value());
  CHECK(record::to_string(found, last) == "dp.barrier(), call 7");

  REQUIRE(found.marks.size() == 1);
  CHECK(found.marks[0].text == "step 12");
  CHECK(found.marks[0].sequence == 2);
  REQUIRE(found.wait.has_value());
  CHECK(found.wait->text == "close()");
  CHECK(found.wait->point == 77);
  CHECK(found.wait->ranks == RankSet::parse("0-1"));

  // The order of events, on the clock of node 0.
  REQUIRE(first.begin.has_value());
  REQUIRE(first.end.has_value());
  REQUIRE(last.begin.has_value());
  CHECK(*first.begin <= *first.end);
  CHECK(*first.end <= found.marks[0].time);
  CHECK(found.marks[0].time <= *last.begin);
  CHECK(*last.begin <= found.read_at);
  const std::int64_t now = rankmesh::detail::monotonic_nanoseconds() + 5'000'000'000;
  CHECK(found.read_at <= now);
  CHECK(found.is_observed);
  CHECK(now - *first.begin < 60'000'000'000);
}

TEST_CASE("a record says from which places in the program its calls were made") {
  const RecordedRank rank{facts_of_rank_1(), "", false, true};
  for (std::uint64_t i = 1; i <= 3; ++i) rank.make(rank.tp, call_of(Operation::all_reduce), i);
  rank.make(rank.dp, call_of(Operation::barrier, 0), 1);
  const record::Record found = read_own();
  CHECK(found.has_all_times);  // also those of calls that would not be timed
  REQUIRE(found.calls.size() == 4);
  REQUIRE(found.call_sites.size() == 2);
  CHECK(found.groups.size() == 2);
  for (const std::size_t i : {0, 1, 2}) CHECK(found.calls[i].site == 1);
  CHECK(found.calls[3].site == 2);
  for (const record::CallSite& site : found.call_sites) {
    REQUIRE_FALSE(site.empty());
    CHECK_CONTAINS(found.files.at(site.front().file), "_record");  // this program
    CHECK(site.front().offset > 0);
  }
  CHECK_FALSE(std::ranges::equal(found.call_sites[0], found.call_sites[1], {},
                                 &record::CodeAddress::offset, &record::CodeAddress::offset));
}

TEST_CASE("without the places of calls, a mark that was overwritten is not taken for one") {
  const RecordedRank rank;
  for (std::size_t i = 0; i < record::format::entry_count; ++i)
    rank.recorder->mark("a mark whose last word is a number: 1");
  rank.make(rank.tp, call_of(Operation::all_reduce), 1);
  const record::Record found = read_own();
  REQUIRE(found.calls.size() == 1);
  CHECK(found.calls[0].site == 0);
}

TEST_CASE("a record that is read soon after its opening has the times of its calls") {
  RecordedRank rank;
  rank.make(rank.tp, call_of(Operation::all_reduce), 1);
  rank.make(rank.tp, call_of(Operation::all_reduce), 2);
  auto bytes = record::copy(own_record(0x1234));
  auto& header = *reinterpret_cast<record::format::Header*>(bytes.data());
  auto* const entries =
      reinterpret_cast<record::format::Entry*>(bytes.data() + record::format::header_bytes);
  header.counter_is_clock = 0;
  header.first.counter = 1'000'000;
  header.first.nanoseconds = 5'000'000'000;
  header.last.counter = 1'400'000;
  header.last.nanoseconds = 5'000'200'000;
  entries[1].begin = 1'100'000;
  entries[1].end = 1'200'000;
  entries[2].begin = 1'500'000;
  entries[2].end = 1'600'000;
  const record::Record found = record::read(bytes, "");
  REQUIRE(found.calls.size() == 2);
  CHECK(found.calls[0].begin == 5'000'050'000);
  CHECK(found.calls[0].end == 5'000'100'000);
  // So short a time says too little about the frequency of the counter afterwards.
  CHECK_FALSE(found.calls[1].begin.has_value());
}

TEST_CASE("equal groups, such as one that is adopted again, are different groups") {
  const auto recorder =
      std::make_shared<detail::Recorder>(detail::Recorder::Facts{.world_size = 2}, "", false);
  const RankSet both = RankSet::range(Rank{0}, 2);
  const auto first = detail::Recorder::recording_of(recorder, "adopted g", {"g"}, both);
  const auto alone =
      detail::Recorder::recording_of(recorder, "adopted g", {"g"}, RankSet::range(Rank{0}, 1));
  const auto again = detail::Recorder::recording_of(recorder, "adopted g", {"g"}, both);
  CHECK(first.group != alone.group);
  CHECK(first.group != again.group);
  const auto found = record::read_all(record::sources_of_process(::getpid())).records.at(0);
  REQUIRE(found.groups.size() == 3);
  CHECK(found.groups[0].identity != found.groups[1].identity);
  CHECK(found.groups[0].identity != found.groups[2].identity);
}

TEST_CASE("a failed call and the end of a mesh are recorded") {
  const rankmesh_test::TemporaryFolder folder;
  {
    const RecordedRank rank{facts_of_rank_1(), folder.path()};
    static_cast<void>(rank.begin(rank.tp, call_of(Operation::all_reduce), 1));  // not ended
    rank.recorder->leave(record::Presence::failed, "out\nof \x1b[31mmemory\xff");
  }
  const auto found = record::read_all(record::sources_in(folder.path()));
  REQUIRE(found.records.size() == 1);
  CHECK(found.remarks.empty());
  CHECK(found.records[0].presence == record::Presence::failed);
  CHECK(found.records[0].reason == "out of  [31mmemory\xef\xbf\xbd");
  REQUIRE(found.records[0].calls.size() == 1);
  CHECK(found.records[0].calls[0].state == record::State::failed);
  CHECK(found.records[0].process == record::Process::unknown);  // of another host
  CHECK(!found.records[0].is_observed);
}

TEST_CASE("a record has the last calls") {
  const RecordedRank rank{facts_of_rank_1(), "", false};
  for (std::uint64_t i = 1; i <= 10'000; ++i) rank.make(rank.tp, call_of(Operation::barrier, 0), i);
  const record::Record found = read_own();
  CHECK(found.calls_made == 10'000);
  REQUIRE(found.calls.size() == 4096);
  for (std::size_t i = 0; i < found.calls.size(); ++i) {
    REQUIRE(found.calls[i].sequence == 5905 + i);
    REQUIRE(found.calls[i].number == 5905 + i);
  }
}

TEST_CASE("a call of a group without a place has a group of its own") {
  const RecordedRank rank;
  RecordedRank::Recording unknown = rank.tp;
  unknown.group = record::format::unknown_group << record::format::group_shift;
  rank.make(unknown, call_of(Operation::barrier, 0), 5);
  rank.make(unknown, call_of(Operation::barrier, 0), 6);
  const record::Record found = read_own();
  REQUIRE(found.calls.size() == 2);
  CHECK(found.groups.size() == 3);
  CHECK(found.calls[0].group == 2);
  CHECK(record::to_string(found, found.calls[1]) == "(unknown group).barrier(), call 6");
}

TEST_CASE("a copy never mixes two calls") {
  const RecordedRank rank{facts_of_rank_1(), "", false};
  std::atomic<bool> stops{false};
  std::thread writer{[&] {
    for (std::uint64_t i = 1; !stops; ++i) {
      // Every word of the entry has the same number.
      CallDescriptor call = call_of(i % 2 == 0 ? Operation::barrier : Operation::all_gather,
                                    static_cast<std::int64_t>(i));
      call.detail = i & 0xffff;
      rank.make(rank.tp, call, i);
      if (i % 1000 == 0)
        rank.recorder->publish({.text = std::string(i / 1000 % 200 + 1, 'x'), .point = i});
    }
  }};
  const std::string path = own_record(0x1234);
  std::size_t calls = 0;
  for (int i = 0; i < 50; ++i) {
    const record::Record found = record::read(record::copy(path), path);
    calls += found.calls.size();
    for (const record::Call& call : found.calls) {
      REQUIRE(call.number == call.sequence);
      REQUIRE(static_cast<std::uint64_t>(call.descriptor.count) == call.sequence);
      REQUIRE(call.descriptor.detail == (call.sequence & 0xffff));
      REQUIRE((call.descriptor.operation() == Operation::barrier) == (call.sequence % 2 == 0));
    }
  }
  stops = true;
  writer.join();
  CHECK(calls > 0);
}

TEST_CASE("a file outlives a process that is killed") {
  const rankmesh_test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    auto facts = facts_of_rank_1();
    facts.boot = rankmesh::detail::own_boot();
    const auto identity = rankmesh::detail::ProcessIdentity::own();
    facts.process.start_time = identity.start_time;
    facts.process.pid_namespace = identity.pid_namespace;
    const RecordedRank rank{facts, folder.path()};
    const auto call = rank.begin(rank.tp, call_of(Operation::all_reduce), 1);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  const auto found = record::read_all(record::sources_in(folder.path()));
  REQUIRE(found.records.size() == 1);
  CHECK(found.records[0].process_id == child);
  CHECK(found.records[0].process == record::Process::ended);
  CHECK(found.records[0].presence == record::Presence::open);
  REQUIRE(found.records[0].calls.size() == 1);
  CHECK(found.records[0].calls[0].state == record::State::issued);
}

TEST_CASE("a file says which process has made it, not only its host and its number") {
  const rankmesh_test::TemporaryFolder folder;
  auto facts = facts_of_rank_1();
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  facts.host = host;
  const auto identity = rankmesh::detail::ProcessIdentity::own();
  facts.process.start_time = identity.start_time;
  facts.process.pid_namespace = identity.pid_namespace;
  const auto process_of = [&](std::array<std::uint64_t, 2> boot, std::uint64_t start) {
    facts.boot = boot;
    facts.process.start_time = start;
    const RecordedRank rank{facts, folder.path()};
    const auto found = record::read_all(record::sources_in(folder.path())).records.at(0);
    CHECK(found.process_origin == std::array{start, identity.pid_namespace, boot[0], boot[1]});
    return found.process;
  };
  const auto boot = rankmesh::detail::own_boot();
  REQUIRE(boot[0] != 0);
  CHECK(process_of(boot, identity.start_time) == record::Process::running);
  CHECK(process_of(boot, identity.start_time + 1) == record::Process::ended);
  // Another machine with the same name, or this one before it was started again.
  CHECK(process_of({boot[0], boot[1] + 1}, identity.start_time) == record::Process::unknown);
  CHECK(process_of({}, identity.start_time) == record::Process::unknown);
}

TEST_CASE("a file of a process in another time namespace") {
  const rankmesh_test::TemporaryFolder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // Future children have clocks that are five seconds ahead.
    const int shifts = ::unshare(CLONE_NEWTIME) == 0
                           ? ::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC)
                           : -1;
    const std::string text = "monotonic 5 0\nboottime 5 0\n";
    const bool is_shifted = shifts >= 0 && ::write(shifts, text.data(), text.size()) > 0;
    if (const pid_t rank_process = is_shifted ? ::fork() : -1; rank_process != 0) {
      if (rank_process < 0) ::_exit(77);
      ::waitpid(rank_process, nullptr, 0);
      ::_exit(0);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto facts = facts_of_rank_1();
    const auto identity = rankmesh::detail::ProcessIdentity::own();
    facts.boot = rankmesh::detail::own_boot();
    facts.process.start_time = identity.start_time;
    facts.process.pid_namespace = identity.pid_namespace;
    const RecordedRank rank{facts, folder.path()};
    const auto call = rank.begin(rank.tp, call_of(Operation::all_reduce), 1);
    static_cast<void>(::write(ready[1], "x", 1) + 1);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  const bool is_recorded = ::read(ready[0], &byte, 1) == 1;
  if (is_recorded) {
    const auto found = record::read_all(record::sources_in(folder.path())).records.at(0);
    CHECK(
        (found.process == record::Process::sleeping || found.process == record::Process::running));
    // Both times are those of its own clock.
    REQUIRE(found.calls.at(0).begin.has_value());
    CHECK(found.read_at >= *found.calls.at(0).begin);
    CHECK(found.read_at - *found.calls.at(0).begin < 4'000'000'000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  SKIP_UNLESS(is_recorded, "needs the right to make a time namespace");
}

TEST_CASE("a stopped process is seen as stopped, and its record can be read") {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RecordedRank rank;
    const auto call = rank.begin(rank.tp, call_of(Operation::all_reduce), 1);
    static_cast<void>(::write(ready[1], "x", 1) + 1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGSTOP);
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  const auto stopped = record::read_all(record::sources_of_process(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  for (const int end : ready) ::close(end);
  REQUIRE(stopped.records.size() == 1);
  CHECK(stopped.records[0].process == record::Process::stopped);
  REQUIRE(stopped.records[0].calls.size() == 1);
  CHECK(stopped.records[0].calls[0].begin.has_value());
}

TEST_CASE("transports of the program are named") {
  auto facts = rankmesh_test::facts_of_rank_1();
  facts.transports = {"gloo", "a_name_of_23_characters"};
  rankmesh_test::RecordedRank rank{facts};
  const auto call = [&](std::size_t index) {
    rankmesh::detail::RecordedCall recorded{rank.tp, call_of(Operation::all_reduce), index + 1,
                                            record::program_carrier(index), record::State::issued};
    recorded.end();
  };
  call(0);
  call(1);
  const auto read = [&] { return record::read(record::copy(own_record(facts.mesh_key)), "own"); };
  const record::Record found = read();
  CHECK(found.transports == facts.transports);
  REQUIRE(found.calls.size() == 2);
  CHECK(record::carrier_name(found, found.calls[0].carrier) == "gloo");
  CHECK(record::carrier_name(found, found.calls[1].carrier) == "a_name_of_23_characters");
  CHECK(record::carrier_name(found, record::Carrier::mpi) == "mpi");
  call(2);  // has no name
  CHECK_THROWS_AS((void)read(), DataError);
}
