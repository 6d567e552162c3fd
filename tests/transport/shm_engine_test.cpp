// SPDX-License-Identifier: BSD-3-Clause
// Tests the protocol of shared memory between the threads of one process: random operations, sizes,
// types and orders of completion, compared with a simple reference. Every algorithm of the table
// must have run, and no step may allocate. Half of the runs let members read each other's ordinary
// memory. The test is built a second time with ThreadSanitizer.
//
//   test_shm_engine [MEMBERS OPERATIONS [SEED]]
//
// Without arguments it runs 4000 operations with each of several numbers of members.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/reductions.hpp"
#include "transport/shm_random_call.hpp"
#include "transport/shm_table_check.hpp"

using namespace rankmesh;
using rankmesh_test::fail;
using rankmesh_test::RandomCall;
using rankmesh_test::region_bytes;
using rankmesh_test::regions;
using rankmesh_test::SharedMemory;

// Counts the allocations of this thread. Not inlined, or g++ warns that new and free do not match.
namespace {
thread_local std::uint64_t allocations = 0;
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

// The operations that each algorithm has completed, and those of them by the fast path.
struct Runs {
  std::uint64_t all = 0, fast = 0;
};
using RunsOf = std::map<const shm::Algorithm*, Runs>;

constexpr DataType types[] = {
    DataType::int8,   DataType::uint8, DataType::int16,  DataType::uint16,  DataType::int32,
    DataType::uint32, DataType::int64, DataType::uint64, DataType::float32, DataType::float64};
constexpr Operation operations[] = {
    Operation::barrier,        Operation::broadcast,  Operation::all_reduce, Operation::all_gather,
    Operation::reduce_scatter, Operation::all_to_all, Operation::reduce,     Operation::gather,
    Operation::scatter,        Operation::scan,       Operation::exscan};

// The ordinary memory of threads is shared, so a read is a copy. ThreadSanitizer finds reads of
// memory that its member may change already.
class ThreadMemory final : public shm::MemoryReader {
 public:
  int read(std::int32_t, std::uint64_t address, std::byte* to, std::size_t bytes) override {
    if (code != 0) return code;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the addresses of all members mean the same here
    std::memcpy(to, reinterpret_cast<const std::byte*>(address), bytes);
    return 0;
  }
  int code = 0;  ///< the result of further reads
};

class Member {
 public:
  Member(SharedMemory& memory, int self, unsigned seed, shm::MemoryReader* reader)
      : memory_{memory},
        self_{self},
        same_{seed},
        own_{seed + 1 + static_cast<unsigned>(self)},
        engine_{memory.areas,
                locals(memory.members),
                self,
                rankmesh_test::slot_bytes,
                {.flat_bytes = 1000, .symmetric_bytes = 64, .direct_bytes = 1},
                &memory,
                {},
                reader} {
    window_.base = memory.base;
    window_.groups = {&memory};
    window_.stride = regions * region_bytes;
    window_.bytes = window_.stride;
    window_.local_rank = self;
  }

  void run(std::uint64_t count) {
    for (std::uint64_t number = 0; number < count; ++number) {
      start(number);
      if (own_() % 4 == 0) advance();
      while (flying_.size() >= regions || (!flying_.empty() && own_() % 3 == 0))
        finish(own_() % flying_.size());
    }
    while (!flying_.empty()) finish(own_() % flying_.size());
  }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }
  [[nodiscard]] std::uint64_t allocated() const { return allocated_; }
  [[nodiscard]] const RunsOf& runs() const { return runs_; }

 private:
  static std::vector<std::int32_t> locals(int n) {
    std::vector<std::int32_t> result;
    for (int k = 0; k < n; ++k) result.push_back(k);
    return result;
  }

  void start(std::uint64_t number) {
    const int n = memory_.members;
    RandomCall& random = *flying_.emplace_back(std::make_unique<RandomCall>());
    random.number = number;
    Call& call = random.call;
    call.operation = operations[same_() % std::size(operations)];
    const DataType type = types[same_() % std::size(types)];
    call.reduction =
        rankmesh_test::all_reductions[same_() % std::size(rankmesh_test::all_reductions)];
    call.root = static_cast<std::int64_t>(same_() % static_cast<unsigned>(n));
    const std::int64_t sizes[] = {0, 1, 3, 8, 40, 200, 1500};
    const auto count =
        sizes[same_() % (same_() % 4 == 0 ? 7 : 5)] + static_cast<std::int64_t>(same_() % 3);
    const bool in_place = same_() % 2 == 0;
    const bool symmetric = same_() % 3 == 0;
    // Members may use different parts of it, so each takes one that is free here.
    if (symmetric) {
      std::vector<bool> taken(regions);
      for (const auto& other : flying_)
        if (other->region >= 0) taken[static_cast<std::size_t>(other->region)] = true;
      do random.region = static_cast<int>(own_() % regions);
      while (taken[static_cast<std::size_t>(random.region)]);
    }
    const bool has_blocks =
        same_() % 3 == 0 &&
        shm::algorithms_of_blocks[static_cast<std::size_t>(call.operation)] != nullptr;
    const rankmesh_test::Place place{self_, n, &window_};
    (has_blocks ? rankmesh_test::fill_blocks : rankmesh_test::fill)(random, place, type, count,
                                                                    in_place);
    const bool tries_fast_path = own_() % 2 == 0;
    const int looks = static_cast<int>(own_() % 50);
    const std::uint64_t before = allocations;
    // The fast path may end in the middle. Then the operation has begun.
    const shm::Outcome outcome = tries_fast_path
                                     ? shm::run_small(engine_, random.progress, call, looks)
                                     : shm::Outcome::not_begun;
    random.is_fast = outcome == shm::Outcome::complete;
    if (outcome == shm::Outcome::not_begun) engine_.begin(random.progress, call);
    allocated_ += allocations - before;
  }

  void advance() {
    const std::uint64_t before = allocations;
    engine_.advance();
    allocated_ += allocations - before;
  }

  void finish(std::size_t which) {
    RandomCall& random = *flying_[which];
    while (!random.is_complete()) {
      advance();
      if (!random.is_complete()) std::this_thread::yield();
    }
    if (!random.expected.empty() || random.call.operation == Operation::barrier) {
      Runs& runs = runs_[random.algorithm()];
      ++runs.all;
      if (random.is_fast) ++runs.fast;
    }
    if (!random.expected.empty() &&
        std::memcmp(random.result, random.expected.data(), random.expected.size()) != 0) {
      if (++wrong_ == 1)
        std::fprintf(stderr, "member %d of %d: operation %llu (%s) gave wrong data\n", self_,
                     memory_.members, static_cast<unsigned long long>(random.number),
                     random.name_of_algorithm().c_str());
    }
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  SharedMemory& memory_;
  int self_;
  std::mt19937 same_, own_;
  shm::Engine engine_;
  SymmetricWindow window_;
  std::deque<std::unique_ptr<RandomCall>> flying_;
  RunsOf runs_;
  std::uint64_t wrong_ = 0;
  std::uint64_t allocated_ = 0;
};

// Every algorithm must have run. With one member the fast path always succeeds, so there every
// small algorithm must have run both ways; with more it depends on who comes first.
bool check_runs(const RunsOf& runs, int members, bool reads_directly) {
  bool good = true;
  for (const shm::Algorithm* algorithm : shm::algorithms_of_blocks)
    if (algorithm != nullptr && !runs.contains(algorithm))
      good = fail(std::string{algorithm->name} + " has never run");
  for (const shm::Choices& choices : shm::algorithms)
    for (const shm::Algorithm* algorithm : choices) {
      if (algorithm == nullptr || (algorithm->is_direct && !reads_directly)) continue;
      if (std::string_view{algorithm->name} == "direct_reduce" && members < 3) continue;
      const auto found = runs.find(algorithm);
      const Runs of = found == runs.end() ? Runs{} : found->second;
      if (of.all == 0) good = fail(std::string{algorithm->name} + " has never run");
      if (of.all == of.fast)
        good = fail(std::string{algorithm->name} + " has run by one path only");
      if (members == 1 && (of.fast != 0) != (algorithm->run_small != nullptr))
        good = fail(std::string{algorithm->name} + " has run by the fast path " +
                    std::to_string(of.fast) + " times");
    }
  return good;
}

// A payload may still be read in the step after its own. Here member 1 has finished step 1 and
// still needs the payload of step 1 in step 2, when member 0 comes to step 5, which uses the same
// slot.
bool check_late_reader() {
  constexpr std::int64_t count =
      3 * static_cast<std::int64_t>(rankmesh_test::slot_bytes / sizeof(std::int32_t));
  SharedMemory memory{2};
  std::vector<std::int32_t> in[2], out[2];
  Call calls[2];
  shm::Progress progress[2]{};
  std::vector<shm::Engine> engines;
  for (int k = 0; k < 2; ++k) {
    for (std::int64_t i = 0; i < count; ++i)
      in[k].push_back(static_cast<std::int32_t>(i) * (k + 1));
    out[k].resize(static_cast<std::size_t>(count));
    calls[k].operation = Operation::all_reduce;
    calls[k].in = buffer_of(std::as_const(in[k]));
    calls[k].out = buffer_of(out[k]);
    engines.emplace_back(memory.areas, std::vector<std::int32_t>{0, 1}, k,
                         rankmesh_test::slot_bytes, shm::Limits{}, &memory);
  }
  for (std::size_t k = 0; k < 2; ++k) engines[k].begin(progress[k], calls[k]);
  for (int i = 0; i < 8; ++i)
    for (shm::Engine& engine : engines) engine.advance();
  bool good = progress[0].is_complete() && progress[1].is_complete();
  for (std::int64_t i = 0; i < count; ++i)
    for (const auto& values : out)
      good = good && values[static_cast<std::size_t>(i)] == static_cast<std::int32_t>(i) * 3;
  return good || fail("a payload was overwritten before the step after its own was finished");
}

// Three members reduce a message of several pieces by reading each other's memory. If a read fails,
// the operation does not go on, and all members' engines say so or wait.
bool check_direct_reads(int code) {
  constexpr std::int64_t count =
      7 * static_cast<std::int64_t>(rankmesh_test::slot_bytes / sizeof(std::int32_t)) + 3;
  constexpr int members = 3;
  SharedMemory memory{members};
  ThreadMemory reader;
  std::vector<std::int32_t> values[members];
  Call calls[members];
  shm::Progress progress[members]{};
  std::vector<shm::Engine> engines;
  for (int k = 0; k < members; ++k) {
    for (std::int64_t i = 0; i < count; ++i)
      values[k].push_back(static_cast<std::int32_t>(i) * (k + 1));
    calls[k].operation = Operation::reduce;
    calls[k].in = buffer_of(std::as_const(values[k]));
    calls[k].out = buffer_of(values[k]);
    engines.emplace_back(memory.areas, std::vector<std::int32_t>{0, 1, 2}, k,
                         rankmesh_test::slot_bytes, shm::Limits{.direct_bytes = 1}, &memory,
                         rankmesh::detail::Recording{}, &reader);
    if (!engines.back().uses_direct_reads(calls[k])) return fail("a call does not read directly");
  }
  for (std::size_t k = 0; k < members; ++k) engines[k].begin(progress[k], calls[k]);
  for (int i = 0; i < 40; ++i) {
    if (i == 2) reader.code = code;
    for (shm::Engine& engine : engines) engine.advance();
  }
  if (code != 0) {
    bool has_failed = false;
    for (const shm::Engine& engine : engines)
      if (const auto failed = engine.failed_read()) has_failed = failed->code == code;
    return (has_failed && std::ranges::none_of(progress, &shm::Progress::is_complete)) ||
           fail("an operation went on after a read had failed");
  }
  bool good = std::ranges::all_of(progress, &shm::Progress::is_complete);
  for (std::int64_t i = 0; i < count; ++i)
    good = good && values[0][static_cast<std::size_t>(i)] == static_cast<std::int32_t>(i) * 6;
  return good || fail("a reduce with direct reads gave wrong data");
}

bool run(int members, std::uint64_t count, unsigned seed, bool reads_directly) {
  SharedMemory memory{members};
  ThreadMemory reader;
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> wrong(static_cast<std::size_t>(members));
  std::vector<std::uint64_t> allocated(static_cast<std::size_t>(members));
  std::vector<RunsOf> runs(static_cast<std::size_t>(members));
  for (int k = 0; k < members; ++k)
    threads.emplace_back([&, k] {
      Member member{memory, k, seed, reads_directly ? &reader : nullptr};
      member.run(count);
      const auto at = static_cast<std::size_t>(k);
      wrong[at] = member.wrong();
      allocated[at] = member.allocated();
      runs[at] = member.runs();
    });
  for (auto& thread : threads) thread.join();
  std::uint64_t all_wrong = 0, all_allocated = 0;
  RunsOf all_runs;
  for (std::size_t k = 0; k < threads.size(); ++k) {
    all_wrong += wrong[k];
    all_allocated += allocated[k];
    for (const auto& [algorithm, of] : runs[k]) {
      all_runs[algorithm].all += of.all;
      all_runs[algorithm].fast += of.fast;
    }
  }
  std::printf("%d members, %llu operations, seed %u%s: %llu wrong, %llu allocations\n", members,
              static_cast<unsigned long long>(count), seed, reads_directly ? ", direct reads" : "",
              static_cast<unsigned long long>(all_wrong),
              static_cast<unsigned long long>(all_allocated));
  // Few operations need not reach every algorithm.
  const bool reached_all = count < 4000 || check_runs(all_runs, members, reads_directly);
  return all_wrong == 0 && all_allocated == 0 && reached_all;
}

}  // namespace

int main(int argc, char** argv) {
  bool good = rankmesh_test::check_table();
  good = check_late_reader() && good;
  for (const int code : {0, EPERM, ESRCH}) good = check_direct_reads(code) && good;
  for (const bool reads_directly : {false, true}) {
    if (argc > 2) {
      const auto seed = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1;
      good = run(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10), seed, reads_directly) &&
             good;
      continue;
    }
    for (const int members : {1, 2, 3, 4, 5, 8})
      good = run(members, 4000, static_cast<unsigned>(10 + members), reads_directly) && good;
  }
  return good ? 0 : 1;
}
