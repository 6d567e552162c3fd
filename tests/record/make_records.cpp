// SPDX-License-Identifier: BSD-3-Clause
// make-records JOB FOLDER: writes the records of a job that never ran, with the same bytes each
// time. JOB is crossed, stopped, running or ended; the job has the mesh dp=2,tp=2 on two hosts.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "record/recorded_rank.hpp"

using namespace rankmesh;
using rankmesh_test::call_of;
namespace format = rankmesh::record::format;

namespace {

constexpr std::int64_t millisecond = 1'000'000;
constexpr std::int64_t opening = 1000 * millisecond;  // on the clock of the node
constexpr std::int64_t observation = opening + 62'000 * millisecond;

RankSet members(std::int64_t first, std::int64_t step) {
  return RankSet::of(std::vector{Rank{first}, Rank{first + step}});
}

// The record of a rank in a file, whose times are set instead of taken.
class File {
 public:
  File(std::int64_t rank, const std::string& folder) {
    rankmesh::detail::Recorder::Facts facts;
    facts.mesh_key = 0xabc;
    facts.world_size = 4;
    facts.rank = Rank{rank};
    facts.mesh = "dp=2,tp=2";
    facts.coordinates = "dp=" + std::to_string(rank / 2) + ",tp=" + std::to_string(rank % 2);
    facts.host = "h" + std::to_string(rank / 2);
    recorder_ = std::make_shared<rankmesh::detail::Recorder>(facts, folder, true);
    recorder_->set_clock(static_cast<std::int32_t>(rank / 2), 0, rank / 2 * 20'000);
    tp = recorder_->recording_of(recorder_, "tp", {"tp"}, members(rank / 2 * 2, 1));
    dp = recorder_->recording_of(recorder_, "dp", {"dp"}, members(rank % 2, 2));
    header_ = tp.record;
    header_->counter_is_clock = 1;
    header_->process_id = 4001 + rank;
    header_->opened_at = 1'767'225'600'000'000'000;
    for (format::ClockPair* pair : {&header_->first, &header_->last}) {
      pair->counter = opening;
      pair->nanoseconds = opening;
    }
    observe(record::Process::sleeping);
  }

  void observe(record::Process process) {
    header_->observed_process = static_cast<std::uint32_t>(process);
    header_->observed_at = observation;
  }
  // Adds a call that began so many milliseconds after the opening; a negative end: it has not
  // ended.
  void call(const rankmesh::detail::Recording& group, Operation operation, std::uint64_t number,
            std::int64_t begin, std::int64_t end) {
    const std::uint64_t word = group.group | number |
                               static_cast<std::uint64_t>(record::Carrier::shared_memory)
                                   << format::carrier_shift;
    const auto state = end < 0 ? record::State::issued : record::State::ended;
    const bool is_barrier = operation == Operation::barrier;
    auto& entry = rankmesh::detail::add_entry(*header_, rankmesh::detail::next_of(*header_),
                                              call_of(operation, is_barrier ? 0 : 1024), word);
    rankmesh::detail::set_state(*header_, entry, state);
    entry.begin = static_cast<std::uint64_t>(opening + begin * millisecond);
    entry.call |= format::timed_bit;
    if (end >= 0) entry.end = static_cast<std::uint64_t>(opening + end * millisecond);
  }
  void mark(const std::string& text, std::int64_t time) {
    recorder_->mark(text);
    auto* const entries = reinterpret_cast<format::Entry*>(reinterpret_cast<std::byte*>(header_) +
                                                           format::header_bytes);
    auto& entry = entries[header_->next / format::position_unit % format::entry_count];
    entry.begin = static_cast<std::uint64_t>(opening + time * millisecond);
    entry.end = entry.begin.load();
  }

  rankmesh::detail::Recording tp, dp;

 private:
  std::shared_ptr<rankmesh::detail::Recorder> recorder_;
  format::Header* header_ = nullptr;
};

// What all ranks have done before they differ.
void make_steps(File& file) {
  for (std::int64_t step = 0; step < 2; ++step) {
    const auto number = static_cast<std::uint64_t>(step + 1);
    file.mark("step " + std::to_string(number), step * 100);
    file.call(file.tp, Operation::all_reduce, number, step * 100 + 10, step * 100 + 12);
    file.call(file.dp, Operation::all_gather, number, step * 100 + 50, step * 100 + 53);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string job = argv[1];
  std::filesystem::create_directories(argv[2]);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    File file{rank, argv[2]};
    make_steps(file);
    if (job == "crossed") {  // ranks 1 and 2 call the two groups in another order
      if (rank == 0 || rank == 3)
        file.call(file.tp, Operation::all_reduce, 3, 210 + rank, -1);
      else
        file.call(file.dp, Operation::all_gather, 3, 210 + rank, -1);
    } else if (job == "stopped") {  // rank 3 is stopped before its third step
      if (rank == 3)
        file.observe(record::Process::stopped);
      else
        file.call(file.tp, Operation::all_reduce, 3, 210 + rank, rank < 2 ? 212 : -1);
      if (rank < 2) file.call(file.dp, Operation::all_gather, 3, 250, -1);
    } else {
      file.observe(job == "ended" ? record::Process::ended : record::Process::running);
    }
  }
  return 0;
}
