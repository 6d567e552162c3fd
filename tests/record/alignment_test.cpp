// SPDX-License-Identifier: BSD-3-Clause
#include "record/alignment.hpp"

#include <doctest/doctest.h>

#include <random>

#include "record/matching.hpp"
#include "record/synthetic_job.hpp"

using namespace rankmesh;
using namespace rankmesh::test;
using record::align;

namespace {

const CallDescriptor barrier = descriptor_of(Operation::barrier);

/// Returns whether no member leaves a collective before another one begins it.
bool is_consistent(const std::vector<Record>& records) {
  const record::Matching matching{records};
  for (const record::Meeting& meeting : matching.meetings())
    for (const auto& a : meeting.calls)
      for (const auto& b : meeting.calls)
        if (*records[a.record].calls[a.call].end < *records[b.record].calls[b.call].begin)
          return false;
  return true;
}

}  // namespace

TEST_CASE("a node is shifted by no more than the collectives ask for") {
  SyntheticJob job{2};
  // The clock of node 1 is late: rank 0 ends at 1,000,000, before rank 1 seems to begin.
  job.add(0, barrier, 900'000, 1'000'000);
  job.add(1, barrier, 1'030'000, 1'050'000);
  std::vector<std::string> remarks;
  const auto aligned = align(job.records, &remarks);
  CHECK(aligned[0].calls[0].begin == 900'000);
  CHECK(aligned[0].read_at == job.records[0].read_at);
  CHECK(is_consistent(aligned));
  const Time shift = *aligned[1].calls[0].begin - 1'030'000;
  CHECK(shift == -30'000);
  CHECK(*aligned[1].calls[0].end == 1'020'000);
  CHECK(aligned[1].read_at == job.records[1].read_at + shift);
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0] == "the clock of node 1 (host1) was shifted by -30.0 us");
}

TEST_CASE("the constraints narrow the error of a clock") {
  SyntheticJob job{2};
  job.add(0, barrier, 900'000, 1'000'000);
  job.add(1, barrier, 980'000, 1'000'000);
  const auto aligned = align(job.records);
  CHECK(*aligned[1].calls[0].begin == 980'000);
  CHECK(aligned[0].clock_error == 0);
  // Node 1 may be later by 20 us and, by its bound, earlier by 100 us.
  CHECK(aligned[1].clock_error == 100'000);
  job.add(0, barrier, 1'990'000, 2'000'000);
  job.add(1, barrier, 1'900'000, 2'010'000);
  CHECK(align(job.records)[1].clock_error == 20'000);
}

TEST_CASE("contradictions leave all clocks as they are, and are reported") {
  SyntheticJob job{2};
  job.add(0, barrier, 900'000, 1'000'000);
  job.add(1, barrier, 1'300'000, 1'400'000);  // 300 us: three times the error of the clock
  std::vector<std::string> remarks;
  const auto aligned = align(job.records, &remarks);
  CHECK(*aligned[1].calls[0].begin == 1'300'000);
  CHECK(aligned[1].clock_error == 100'000);
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0] ==
        "the clocks of the nodes were not refined: the recorded times of node 0 (host0) and node 1 "
        "(host1) contradict each other by 200.0 us");
}

TEST_CASE("contradictions between three nodes are reported") {
  SyntheticJob job{3};
  for (auto& record : job.records) record.groups[0].size = 2;
  const auto meet = [&](std::size_t a, std::size_t b, std::uint64_t group, Time lead) {
    auto& first = job.add(a, barrier, 900'000, 1'000'000);
    auto& second = job.add(b, barrier, 1'000'000 + lead, 1'200'000);
    for (auto* call : {&first, &second}) call->number = group;
  };
  // b has to move to the left of a by 50 us, three times in a circle.
  meet(0, 1, 101, 50'000);
  meet(1, 2, 102, 50'000);
  meet(2, 0, 103, 50'000);
  std::vector<std::string> remarks;
  CHECK(align(job.records, &remarks)[1].calls[0].begin == job.records[1].calls[0].begin);
  REQUIRE(remarks.size() == 1);
  CHECK(remarks[0].find("three or more nodes") != std::string::npos);
}

TEST_CASE("calls that do not synchronise, missing times and short waits constrain nothing") {
  const auto shift_of = [](const CallDescriptor& call, std::optional<Time> end,
                           std::optional<Time> begin, Time last_end, bool has_all_times) {
    SyntheticJob job{2};
    for (auto& record : job.records) record.has_all_times = has_all_times;
    job.add(0, call, std::nullopt, end);
    job.add(1, call, begin, last_end);
    return align(job.records)[1].read_at - job.records[1].read_at;
  };
  CHECK(shift_of(barrier, 1'000'000, 1'050'000, 1'060'000, false) == -50'000);
  CHECK(shift_of(descriptor_of(Operation::all_reduce, 8), 1'000'000, 1'050'000, 1'060'000, false) ==
        -50'000);
  CHECK(shift_of(barrier, std::nullopt, 1'050'000, 1'060'000, false) == 0);
  CHECK(shift_of(barrier, 1'000'000, std::nullopt, 1'060'000, false) == 0);
  CHECK(shift_of(descriptor_of(Operation::broadcast, 8), 1'000'000, 1'050'000, 1'060'000, false) ==
        0);
  CHECK(shift_of(descriptor_of(Operation::all_reduce, 0), 1'000'000, 1'050'000, 1'060'000, false) ==
        0);
  // Taken when the rank noticed that it has to wait, perhaps after the last one had come.
  CHECK(shift_of(barrier, 1'000'000, 1'050'000, 1'059'999, false) == 0);
  CHECK(shift_of(barrier, 1'000'000, 1'050'000, 1'059'999, true) == -50'000);
}

TEST_CASE("a message is not received before it was sent") {
  SyntheticJob job{2};
  job.add(0, descriptor_of(Operation::recv, 4, 1, 3), 900'000, 1'000'000);
  job.add(1, descriptor_of(Operation::send, 4, 0, 3), 1'040'000, 1'100'000);
  CHECK(*align(job.records)[1].calls[0].begin == 1'000'000);
  job.records[1].calls_made += 5;  // The record has lost calls: who receives what is not certain.
  CHECK(*align(job.records)[1].calls[0].begin == 1'040'000);
}

TEST_CASE("nodes that no constraint touches keep their clocks") {
  SyntheticJob job{3};
  for (auto& record : job.records) record.groups[0].size = 2;
  job.add(0, barrier, 900'000, 1'000'000);
  job.add(1, barrier, 1'060'000, 1'080'000);
  job.records[2].marks.push_back({1, 5, "here"});
  const auto aligned = align(job.records);
  CHECK(*aligned[1].calls[0].begin == 1'000'000);
  CHECK(aligned[2].marks[0].time == 5);
}

TEST_CASE("clocks that are wrong by less than their error become consistent") {
  std::mt19937_64 random{5};
  for (int round = 0; round < 20; ++round) {
    SyntheticJob job{8, 2};
    std::vector<Time> offsets{0};
    for (int n = 1; n < 4; ++n) offsets.push_back(static_cast<Time>(random() % 160'000) - 80'000);
    Time now = 1'000'000;
    for (int i = 0; i < 50; ++i) {
      std::vector<Time> begins;
      for (int r = 0; r < 8; ++r) begins.push_back(now + static_cast<Time>(random() % 40'000));
      now = std::ranges::max(begins) + 3'000;
      for (std::size_t r = 0; r < 8; ++r) {
        const Time offset = offsets[r / 2];
        job.add(r, barrier, begins[r] + offset, now + static_cast<Time>(random() % 500) + offset);
      }
      now += 20'000;
    }
    for (auto& record : job.records) record.has_all_times = true;
    std::vector<std::string> remarks;
    const auto aligned = align(job.records, &remarks);
    CHECK(is_consistent(aligned));
    for (std::size_t r = 0; r < 8; ++r) {
      const Time error = aligned[r].read_at - (job.records[r].read_at - offsets[r / 2]);
      CHECK(std::abs(error) <= aligned[r].clock_error);
      CHECK(aligned[r].clock_error <= 40'000);
    }
  }
}
