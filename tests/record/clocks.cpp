// SPDX-License-Identifier: BSD-3-Clause
// clocks run | check DIR: tests how the clocks of nodes are related.
//
// `run` is a job. Each rank makes collectives and sets marks that contain the wall clock, which is
// the same on emulated hosts even where their monotonic clocks differ. `check` reads the records of
// the job from a folder. It fails if a collective ends on a rank before its last member began, or
// if the times of marks differ from the wall clock by more on one rank than on another one.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "rankmesh/record/find.hpp"
#include "record/alignment.hpp"
#include "record/matching.hpp"

using namespace rankmesh;

namespace {

constexpr int steps = 400;
constexpr std::size_t parts = 4;                    // of the job, each of which is compared
constexpr record::Time largest_error = 200'000;     // 200 us
constexpr record::Time error_of_the_test = 20'000;  // of reading two clocks one after the other

std::int64_t wall_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int run(int argc, char** argv) {
  const mpi::Environment environment{argc, argv};
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=2"};
  std::vector<float> values(64, 1);
  for (int i = 0; i < steps; ++i) {
    mesh["tp"].all_reduce(values);
    mesh["dp"].barrier();
    mesh["dp"].all_reduce(values);
    mesh.mark(std::to_string(wall_clock()));
    std::this_thread::sleep_for(std::chrono::microseconds{200});
  }
  mesh.close();
  return 0;
}

// By how much the times of the timeline are greater than the wall clock of this rank, in each part
// of the job. A delay between reading both clocks only adds to it, so the least difference counts.
std::array<record::Time, parts> differences(const record::Record& record) {
  std::array<record::Time, parts> least{};
  least.fill(std::numeric_limits<record::Time>::max());
  for (std::size_t i = 0; i < record.marks.size(); ++i) {
    const record::Mark& mark = record.marks[i];
    std::int64_t wall = 0;
    std::from_chars(mark.text.data(), mark.text.data() + mark.text.size(), wall);
    record::Time& part = least[i * parts / record.marks.size()];
    part = std::min(part, mark.time - wall);
  }
  return least;
}

// The largest difference between two ranks in a part of the job.
record::Time error_of(const std::vector<record::Record>& records) {
  std::array<record::Time, parts> least{}, most{};
  least.fill(std::numeric_limits<record::Time>::max());
  most.fill(std::numeric_limits<record::Time>::min());
  for (const record::Record& record : records) {
    const auto of_rank = differences(record);
    for (std::size_t i = 0; i < parts; ++i) {
      least[i] = std::min(least[i], of_rank[i]);
      most[i] = std::max(most[i], of_rank[i]);
    }
  }
  record::Time error = 0;
  for (std::size_t i = 0; i < parts; ++i) error = std::max(error, most[i] - least[i]);
  return error;
}

// The collectives that end on a rank before their last member began, and the number of all.
struct Order {
  std::size_t wrong = 0, all = 0;
};

Order order_of(std::span<const record::Record> records) {
  Order order;
  const record::Matching matching{records};
  for (const record::Meeting& meeting : matching.meetings()) {
    record::Time first_end = std::numeric_limits<record::Time>::max();
    record::Time last_begin = std::numeric_limits<record::Time>::min();
    for (const record::CallIndex& index : meeting.calls) {
      const record::Call& call = records[index.record].calls[index.call];
      if (call.end) first_end = std::min(first_end, *call.end);
      if (call.begin) last_begin = std::max(last_begin, *call.begin);
    }
    order.all += meeting.has_all_members ? 1 : 0;
    order.wrong += meeting.has_all_members && first_end < last_begin ? 1 : 0;
  }
  return order;
}

void print(const char* when, const std::vector<record::Record>& records) {
  std::int64_t claimed = 0;
  for (const record::Record& record : records) claimed = std::max(claimed, record.clock_error);
  const Order order = order_of(records);
  std::printf(
      "%s: the error is %.1f us, the records say at most %.1f us; %zu of %zu collectives "
      "end before their last member began\n",
      when, static_cast<double>(error_of(records)) / 1e3, static_cast<double>(claimed) / 1e3,
      order.wrong, order.all);
}

int check(const std::string& folder) {
  record::Records read = record::read_all(record::sources_in(folder));
  std::vector<std::string> remarks;
  print("as recorded", read.records);
  const std::vector<record::Record> aligned = record::align(read.records, &remarks);
  print("aligned", aligned);
  for (const std::string& remark : remarks) std::printf("%s\n", remark.c_str());
  bool is_right = aligned.size() == 4;
  std::int64_t claimed = 0;
  for (const record::Record& record : aligned) {
    is_right = is_right && record.marks.size() == steps && record.has_all_times;
    claimed = std::max(claimed, record.clock_error);
  }
  const Order order = order_of(aligned);
  is_right = is_right && order.wrong == 0 && order.all == 6 * steps;
  is_right =
      is_right && error_of(read.records) <= read.records.back().clock_error + error_of_the_test;
  is_right = is_right && error_of(aligned) <= claimed + error_of_the_test;
  // Two clocks that were not related differ by seconds.
  return is_right && error_of(aligned) < largest_error ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "run") return run(argc, argv);
  if (what == "check" && argc == 3) return check(argv[2]);
  return 2;
}
