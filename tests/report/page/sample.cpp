// SPDX-License-Identifier: BSD-3-Clause
// sample html|json RANKS STEPS, or sample empty 0 0
//
// Writes the timeline of a job that hangs: 8 ranks per pipeline stage, tp=4, and texts that try to
// become markup.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "report/timeline.hpp"

using namespace rankmesh;
using record::Call;
using record::Record;
using record::State;
using record::Time;

namespace {

class Job {
 public:
  explicit Job(std::int64_t ranks) : ranks_{ranks}, clock_(static_cast<std::size_t>(ranks)) {
    for (std::int64_t r = 0; r < ranks; ++r) {
      Record record;
      record.mesh_key = 1;
      record.mesh = "dp=" + std::to_string(ranks / 4) + ",tp=4 </script><b id=evil>";
      record.world_size = ranks;
      record.rank = r;
      record.coordinates = "dp=" + std::to_string(r / 4) + ",tp=" + std::to_string(r % 4);
      record.node = static_cast<std::int32_t>(r / 8);
      record.host = "node" + std::to_string(record.node);
      record.process_id = 4000 + r;
      record.process = record::Process::sleeping;
      record.opened_at = 1'760'000'000'000'000'000;
      add_group(record, 100 + r / 4, "tp", RankSet::range(r / 4 * 4, 4));
      const Mode mode{ranks / 4, 4};
      add_group(record, 50 + r % 4, "dp", RankSet::strided(r % 4, std::span{&mode, 1}));
      records.push_back(record);
      numbers_.push_back({0, 0});
    }
  }

  /// Lets all ranks of a group take part in a collective, or all but one, for which the others
  /// wait.
  void meet(std::size_t group, std::int64_t leader, Operation operation, std::int64_t count,
            std::int64_t missing = -1) {
    const RankSet members = records[static_cast<std::size_t>(leader)].groups[group].ranks;
    Time last = 0;
    members.for_each([&](Rank rank) { last = std::max(last, clock_of(rank)); });
    const Time end = last + 2'000 + count / 8;
    members.for_each([&](Rank rank) {
      if (rank.value() == missing) return;
      Time& clock = clock_of(rank);
      Call& call = add(rank, group, operation, count);
      call.number = ++numbers_[index(rank)][group];
      call.carrier = group == 0 ? record::Carrier::shared_memory : record::Carrier::hierarchical;
      const bool is_timed = clock + 4'000 < last || call.sequence % 64 == 0 || missing >= 0;
      if (is_timed) call.begin = clock;
      if (missing >= 0) {
        call.state = group == 0 ? State::issued : State::inside;
        return;
      }
      clock = end + static_cast<Time>(random_() % 700);
      if (is_timed) call.end = clock;
    });
  }

  void message(std::int64_t from, std::int64_t to) {
    for (const bool sends : {true, false}) {
      const std::int64_t rank = sends ? from : to;
      Call& call = add(rank, 1, sends ? Operation::send : Operation::recv, 64);
      const auto peer = static_cast<std::uint64_t>((sends ? to : from) / 4);
      call.descriptor.kind |= peer << 32;
      call.descriptor.detail |= peer << 16;
      call.begin = clock_of(rank);
      if (!sends) clock_of(to) = std::max(clock_of(to), clock_of(from)) + 9'000;
      call.end = clock_of(rank) += 3'000;
    }
  }

  void compute(std::int64_t rank, Time least, Time spread) {
    clock_of(rank) += least + static_cast<Time>(random_() % static_cast<std::uint64_t>(spread));
  }

  void mark(std::int64_t rank, std::string text) {
    Record& record = records[index(rank)];
    record.marks.push_back({++record.calls_made, clock_of(rank), std::move(text)});
  }

  /// Keeps the last 4,096 calls.
  void finish(Time after) {
    Time last = 0;
    for (const Time clock : clock_) last = std::max(last, clock);
    for (Record& record : records) {
      record.read_at = last + after;
      if (record.calls.size() > 4096)
        record.calls.erase(record.calls.begin(), record.calls.end() - 4096);
    }
  }

  std::vector<Record> records;

 private:
  static void add_group(Record& record, std::int64_t identity, std::string name, RankSet ranks) {
    record.groups.push_back({.identity = static_cast<std::uint64_t>(identity),
                             .names = {std::move(name)},
                             .size = ranks.size(),
                             .ranks = ranks});
  }
  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank.value()); }
  Time& clock_of(Rank rank) { return clock_[index(rank)]; }

  Call& add(Rank rank, std::size_t group, Operation operation, std::int64_t count) {
    Record& record = records[index(rank)];
    Call call;
    call.sequence = ++record.calls_made;
    call.state = State::ended;
    call.carrier = record::Carrier::shared_memory;
    call.group = group;
    call.descriptor.kind =
        static_cast<std::uint64_t>(operation) | static_cast<std::uint64_t>(DataType::float32) << 8;
    call.descriptor.count = operation == Operation::barrier ? 0 : count;
    record.calls.push_back(call);
    return record.calls.back();
  }

  std::int64_t ranks_;
  std::vector<Time> clock_;
  std::vector<std::array<std::uint64_t, 2>> numbers_;
  std::mt19937_64 random_{3};
};

void run_step(Job& job, std::int64_t ranks, int step) {
  for (int layer = 0; layer < 4; ++layer) {
    for (std::int64_t r = 0; r < ranks; ++r)
      job.compute(r, 15'000, r == 5 ? 60'000 : 12'000);  // rank 5 is slow
    for (std::int64_t r = 0; r < ranks; r += 4)
      job.meet(0, r, layer % 2 == 0 ? Operation::all_reduce : Operation::all_gather, 4096);
  }
  if (step % 3 == 0 && ranks > 8) job.message(1, 5);
  for (std::int64_t r = 0; r < ranks; ++r) job.compute(r, 2'000, 9'000);
  for (std::int64_t r = 0; r < 4; ++r) job.meet(1, r, Operation::reduce_scatter, 65'536);
  if (step % 5 == 0)
    for (std::int64_t r = 0; r < ranks; ++r) job.mark(r, "step " + std::to_string(step));
}

void print(std::string_view text) { std::cout << text; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  if (std::string{argv[1]} == "empty") {
    report::write_html(print, {});
    return 0;
  }
  const std::int64_t ranks = std::atoll(argv[2]);
  const int steps = std::atoi(argv[3]);
  Job job{ranks};
  for (int step = 0; step < steps; ++step) run_step(job, ranks, step);
  job.mark(2,
           "</script><script>document.title='evil'</script><img src=x "
           "onerror=\"document.title='evil'\">");
  // Rank 6 skips a collective of tp; rank 2 waits for it in dp.
  for (std::int64_t r = 0; r < ranks; ++r) job.compute(r, 9'000, 20'000);
  job.meet(0, 4, Operation::barrier, 0, 6);
  for (std::int64_t r = 0; r < ranks; r += 4)
    if (r != 4) job.meet(0, r, Operation::barrier, 0);
  for (std::int64_t r = 0; r < ranks; ++r) job.compute(r, 9'000, 20'000);
  job.records[6].process = record::Process::stopped;
  for (std::int64_t r : {0, 1, 3}) job.meet(1, r, Operation::reduce_scatter, 65'536, r + 4);
  job.meet(1, 2, Operation::reduce_scatter, 65'536, 6);
  job.finish(65'000'000'000);
  // Ranks 4, 5 and 7 are in the barrier of tp and in no other call.
  for (const std::size_t r : {4, 5, 7})
    while (!job.records[r].calls.empty() &&
           job.records[r].calls.back().descriptor.operation() != Operation::barrier)
      job.records[r].calls.pop_back();
  const std::vector<std::string> diagnosis{
      "Rank 6 (dp=1,tp=2) is stopped by a signal on node0 and is in no call.",
      "Ranks 4, 5 and 7 wait for rank 6 in tp.barrier(), call " + std::to_string(4 * steps + 1) +
          "; </script><b id=evil>not markup</b>"};
  if (std::string{argv[1]} == "html")
    report::write_html(print, job.records, diagnosis);
  else
    report::write_trace_events(print, job.records);
  return 0;
}
