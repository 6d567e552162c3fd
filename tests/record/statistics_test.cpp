// SPDX-License-Identifier: BSD-3-Clause
#include "record/statistics.hpp"

#include <doctest/doctest.h>

#include "record/synthetic_job.hpp"

using namespace rankmesh;
using namespace rankmesh::test;
using record::activity_between;

namespace {

const CallDescriptor meet = descriptor_of(Operation::all_reduce, 250);  // 1,000 bytes

/// Two readings of a job, one second apart.
struct Readings {
  explicit Readings(std::int64_t ranks, std::int64_t ranks_per_node = 8)
      : job{ranks, ranks_per_node} {}

  record::FamilyActivity activity() {
    for (Record& record : job.records) record.read_at = 2'000'000'000;
    const auto result = activity_between(before, job.records);
    CHECK(result.seconds == doctest::Approx(1));
    REQUIRE(result.families.size() == 1);
    CHECK(result.families[0].name == "dp");
    return result.families[0];
  }
  void read() { before = job.records; }

  SyntheticJob job;
  std::vector<Record> before;
};

}  // namespace

TEST_CASE("calls and bytes since the last reading") {
  Readings readings{2};
  for (std::size_t r : {0U, 1U}) readings.job.add(r, meet);
  readings.read();
  for (int i = 0; i < 10; ++i)
    for (std::size_t r : {0U, 1U}) readings.job.add(r, meet);
  readings.job.mark(0, 1'500'000'000, "mark");
  const auto family = readings.activity();
  CHECK(family.ranks == 2);
  CHECK(family.calls == 20);
  CHECK(family.calls_per_second() == doctest::Approx(20));
  CHECK(family.bytes_per_second() == doctest::Approx(20'000));
  CHECK(!family.is_extrapolated);
}

TEST_CASE("lost calls are extrapolated") {
  Readings readings{1};
  readings.read();
  for (int i = 0; i < 100; ++i) readings.job.add(0, meet);
  auto& record = readings.job.records[0];
  record.calls.erase(record.calls.begin(), record.calls.begin() + 75);
  record.calls.front().begin = 1'900'000'000;
  record.calls.front().end = 1'950'000'000;
  const auto family = readings.activity();
  CHECK(family.calls == doctest::Approx(100));
  CHECK(family.is_extrapolated);
  CHECK(family.waited_share() == doctest::Approx(0.5));  // of the 0.1 s that are left
}

TEST_CASE("the share of time waited counts blocking calls within the interval") {
  Readings readings{1};
  readings.job.add(0, meet, 900'000'000, {}, State::issued);
  readings.read();
  auto& call = readings.job.records[0].calls[0];
  call.state = State::ended;
  call.end = 1'100'000'000;  // 0.1 s of it after the first reading
  readings.job.add(0, meet, 1'200'000'000, 1'300'000'000).is_async = true;
  readings.job.add(0, meet, 1'400'000'000, 1'500'000'000).carrier = record::Carrier::nccl;
  readings.job.add(0, meet, 1'800'000'000, {}, State::inside);
  CHECK(readings.activity().waited_share() == doctest::Approx(0.3));
}

TEST_CASE("the latest begin is that of the last member") {
  Readings readings{3};
  readings.read();
  for (int i = 0; i < 3; ++i) {
    readings.job.add(0, meet, 1'100'000'000, 1'300'000'000);
    readings.job.add(1, meet, 1'290'000'000, 1'300'000'000);
    readings.job.add(2, meet, 1'200'000'000, 1'300'000'000);
  }
  const auto family = readings.activity();
  CHECK(family.decided == 3);
  CHECK(family.undecided == 0);
  REQUIRE(family.most_often_last() == std::size_t{1});
  CHECK(family.last.at(1).times == 3);
  CHECK(family.last.at(1).caused == 3 * (190'000'000 + 90'000'000));
}

TEST_CASE("begins of two nodes that differ by less than their clocks decide nothing") {
  Readings readings{2, 1};
  readings.read();
  readings.job.add(0, meet, 1'100'000'000, 1'300'000'000);
  readings.job.add(1, meet, 1'100'090'000, 1'300'000'000);
  CHECK(readings.activity().undecided == 1);
  readings.job.records[1].clock_error = 80'000;
  CHECK(readings.activity().decided == 1);
}

TEST_CASE("the member that did not wait is the last") {
  Readings readings{3};
  readings.read();
  readings.job.add(0, meet, 1'100'000'000, 1'300'000'000);
  readings.job.add(1, meet, 1'200'000'000, 1'310'000'000);
  readings.job.add(2, meet);
  const auto family = readings.activity();
  CHECK(family.decided == 1);
  CHECK(family.most_often_last() == std::size_t{2});
  CHECK(family.last.at(2).caused == 300'000'000);
}

TEST_CASE("if several did not wait, or a time was only sampled, the last is not known") {
  Readings readings{3};
  readings.read();
  readings.job.add(0, meet, 1'100'000'000, 1'300'000'000);
  for (std::size_t r : {1U, 2U}) readings.job.add(r, meet);
  CHECK(readings.activity().undecided == 1);
  CHECK(!readings.activity().most_often_last());

  auto& sampled = readings.job.records[1].calls[0];
  sampled.begin = 1'290'000'000;
  sampled.end = 1'300'000'000;
  CHECK(readings.activity().decided == 1);
  sampled.sequence = 64;
  readings.job.records[1].calls_made = 64;
  CHECK(readings.activity().undecided == 1);
}

TEST_CASE("calls in which nobody waited, that are not over, or that are old do not count") {
  Readings readings{2};
  readings.job.add(0, meet, 100, 300);
  readings.job.add(1, meet);
  readings.read();
  for (std::size_t r : {0U, 1U}) readings.job.add(r, meet);
  readings.job.add(0, meet, 1'100'000'000, {}, State::issued);
  readings.job.add(1, meet);
  const auto family = readings.activity();
  CHECK(family.decided == 0);
  CHECK(family.undecided == 0);
}

TEST_CASE("ranks that one of the readings lacks are left out") {
  SyntheticJob job{2};
  CHECK(activity_between({}, job.records).families.empty());
  CHECK(activity_between({}, {}).seconds == 0);
  auto now = job.records;
  for (Record& record : now) record.read_at += 500'000'000;
  now[1].process_id = 999;
  const auto activity = activity_between(job.records, now);
  CHECK(activity.seconds == doctest::Approx(0.5));
  CHECK(activity.families[0].ranks == 1);
}
