// SPDX-License-Identifier: BSD-3-Clause
#include "report/reports.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "record/synthetic_job.hpp"
#include "report/write.hpp"

using namespace rankmesh;
using namespace rankmesh::test;
using report::Format;

namespace {

struct Job {
  Job() : job{4, 2} {
    before = job.records;
    const auto call = descriptor_of(Operation::all_reduce, 1 << 18);
    for (Time i = 0; i < 50; ++i) {
      const Time time = 1'000'000'000 + i * 20'000'000;
      for (std::size_t r : {0U, 1U, 2U}) job.add(r, call, time, time + 10'000'000);
      job.add(3, call);
    }
    for (std::size_t r : {0U, 1U})
      job.add(r, descriptor_of(Operation::barrier), 1'990'000'000, {}, State::issued);
    for (Record& record : job.records) record.read_at = 2'000'000'000;
    job.records[2].wait = record::Wait{"close()", 500'000'000};
  }
  SyntheticJob job;
  std::vector<Record> before;
};

}  // namespace

TEST_CASE("the screen names the rank that is last most often, with its host") {
  Job job;
  CHECK(to_string(report::follow(job.before, job.job.records), Format::text) ==
        "dp=4  4 ranks on 2 nodes, the last 1.0 s\n"
        "\n"
        "  family  calls/s  bytes/s  waited  last most often  host    last in  others waited\n"
        "  dp          202  200 MiB   38.0%  3 (dp=3)         host1  50 of 50          1.5 s\n"
        "\n"
        "3 ranks are in a call or waiting\n"
        "  rank 2 (dp=2) on host1: close(), for 1.5 s\n"
        "  rank 0 (dp=0) on host0: dp.barrier(), call 51, for 10.0 ms\n"
        "  rank 1 (dp=1) on host0: dp.barrier(), call 51, for 10.0 ms\n");
}

TEST_CASE("JSON has the figures as numbers") {
  Job job;
  const auto parsed =
      nlohmann::json::parse(to_string(report::follow(job.before, job.job.records), Format::json));
  CHECK(parsed.at("schema") == "rankmesh.follow/1");
  CHECK(parsed.at("seconds") == 1);
  CHECK(parsed.at("families")[0].at("most_often_last").at("rank") == 3);
  CHECK(parsed.at("families")[0].at("most_often_last").at("host") == "host1");
  CHECK(parsed.at("waiting").size() == 3);
  CHECK(parsed.at("waiting")[0].at("activity") == "close()");
}

TEST_CASE("the screen has a limited height") {
  SyntheticJob job{100, 10};
  const auto before = job.records;
  for (Record& record : job.records) {
    for (int i = 0; i < 30; ++i)
      record.groups.push_back({.identity = 100 + static_cast<std::uint64_t>(i),
                               .names = {"family" + std::to_string(i)},
                               .size = 1,
                               .ranks = RankSet::range(record.rank, 1)});
    record.wait = record::Wait{"close()", 5};
    record.read_at = 2'000'000'000;
  }
  const std::string text = to_string(report::follow(before, job.records), Format::text);
  CHECK(std::ranges::count(text, '\n') <= 24);
  CHECK(text.find("100 ranks are in a call or waiting") != std::string::npos);
  CHECK(!to_string(report::follow({}, {}), Format::text).empty());
}
