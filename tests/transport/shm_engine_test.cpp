// SPDX-License-Identifier: BSD-3-Clause
// Tests the protocol of shared memory between the threads of one process: random operations, sizes,
// types and orders of completion, compared with a simple reference. Every algorithm of the table
// must have run, and no step may allocate. The test is built a second time with ThreadSanitizer.
//
//   test_shm_engine [MEMBERS OPERATIONS [SEED]]
//
// Without arguments it runs 2000 operations with each of several numbers of members.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/reductions.hpp"
#include "transport/detail/reduce_kernels.hpp"
#include "transport/shm/algorithms.hpp"
#include "transport/shm/engine.hpp"

using namespace rankmesh;

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

constexpr std::size_t slot_bytes = shm::medium_bytes + 1024;
constexpr std::size_t region_bytes = 131072;  // of symmetric memory, per operation in flight
constexpr int regions = 8;

constexpr DataType types[] = {
    DataType::int8,   DataType::uint8, DataType::int16,  DataType::uint16,  DataType::int32,
    DataType::uint32, DataType::int64, DataType::uint64, DataType::float32, DataType::float64};
constexpr Operation operations[] = {
    Operation::barrier,    Operation::broadcast,      Operation::all_reduce,
    Operation::all_gather, Operation::reduce_scatter, Operation::all_to_all,
    Operation::reduce,     Operation::gather,         Operation::scatter};

std::byte* aligned(std::vector<std::byte>& memory, std::size_t bytes) {
  memory.assign(bytes + shm::line, std::byte{0});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + (shm::line - address % shm::line) % shm::line;
}

// The memory of all members.
struct SharedMemory {
  explicit SharedMemory(int n) : members{n} {
    const auto un = static_cast<std::size_t>(n);
    std::byte* at = aligned(area_memory, un * shm::Area::size(slot_bytes));
    for (std::size_t k = 0; k < un; ++k) areas.push_back(at + k * shm::Area::size(slot_bytes));
    base = aligned(window_memory, un * regions * region_bytes);
  }
  int members;
  std::vector<std::byte> area_memory, window_memory;
  std::vector<std::byte*> areas;
  std::byte* base = nullptr;
};

// The value of a member at place i of an operation.
int value(int member, std::uint64_t operation, std::int64_t i) {
  return static_cast<int>((static_cast<std::uint64_t>(member) * 7 + operation * 13 +
                           static_cast<std::uint64_t>(i) * 3) %
                          3) +
         1;
}

template <class T>
void put(std::byte* to, std::int64_t i, T v) {
  std::memcpy(to + static_cast<std::size_t>(i) * sizeof(T), &v, sizeof v);
}

template <class T>
T reduced(ReduceOp op, int members, std::uint64_t operation, std::int64_t i) {
  return rankmesh_test::reduced<T>(
      op, members, [&](std::int64_t k) { return value(static_cast<int>(k), operation, i); });
}

std::string name_of(const shm::Algorithm* algorithm) {
  return algorithm == nullptr ? "no algorithm" : std::string{algorithm->name};
}

struct Item {
  Call call;
  shm::Progress progress{};
  bool is_fast = false;  // complete at once, so there is no record of its progress
  std::uint64_t number = 0;

  [[nodiscard]] bool is_complete() const { return is_fast || progress.is_complete(); }
  [[nodiscard]] const shm::Algorithm* algorithm() const {
    return is_fast ? shm::small_algorithms[static_cast<std::size_t>(call.operation)]
                   : progress.algorithm;
  }
  std::vector<std::byte> in, out, expected;
  std::byte* result = nullptr;
  int region = -1;
};

class Member {
 public:
  Member(SharedMemory& memory, int self, unsigned seed)
      : memory_{memory},
        self_{self},
        same_{seed},
        own_{seed + 1 + static_cast<unsigned>(self)},
        engine_{memory.areas,
                locals(memory.members),
                self,
                slot_bytes,
                {.flat_bytes = 1000, .symmetric_bytes = 64},
                &memory} {
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
    Item& item = *flying_.emplace_back(std::make_unique<Item>());
    item.number = number;
    Call& call = item.call;
    call.operation = operations[same_() % std::size(operations)];
    const DataType type = types[same_() % std::size(types)];
    call.reduction =
        rankmesh_test::all_reductions[same_() % std::size(rankmesh_test::all_reductions)];
    call.root = static_cast<std::int64_t>(same_() % static_cast<unsigned>(n));
    const std::int64_t sizes[] = {0, 1, 3, 8, 40, 200, 900};
    const auto count =
        sizes[same_() % (same_() % 4 == 0 ? 7 : 5)] + static_cast<std::int64_t>(same_() % 3);
    const bool in_place = same_() % 2 == 0;
    const bool symmetric = same_() % 3 == 0;
    // Members may use different parts of it, so each takes one that is free here.
    if (symmetric) {
      std::vector<bool> taken(regions);
      for (const auto& other : flying_)
        if (other->region >= 0) taken[static_cast<std::size_t>(other->region)] = true;
      do item.region = static_cast<int>(own_() % regions);
      while (taken[static_cast<std::size_t>(item.region)]);
    }
    rankmesh::visit(type, [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_arithmetic_v<T>) fill<T>(item, call, type, count, in_place);
    });
    const bool tries_fast_path = own_() % 2 == 0;
    const int looks = static_cast<int>(own_() % 50);
    const std::uint64_t before = allocations;
    // The fast path may end in the middle. Then the operation has begun.
    const shm::Outcome outcome =
        tries_fast_path ? engine_.run_small(item.progress, call, looks) : shm::Outcome::not_begun;
    item.is_fast = outcome == shm::Outcome::complete;
    if (outcome == shm::Outcome::not_begun) engine_.begin(item.progress, call);
    allocated_ += allocations - before;
  }

  void advance() {
    const std::uint64_t before = allocations;
    engine_.advance();
    allocated_ += allocations - before;
  }

  // Memory of an operation: half a region each for in and out where it is symmetric.
  std::byte* memory(Item& item, std::vector<std::byte>& plain, std::size_t bytes, bool second) {
    plain.assign(bytes, std::byte{0});
    if (item.region < 0) return plain.data();
    std::byte* at = window_.own() + static_cast<std::size_t>(item.region) * region_bytes +
                    (second ? region_bytes / 2 : 0);
    std::memset(at, 0, bytes);
    return at;
  }

  template <class T>
  void fill(Item& item, Call& call, DataType type, std::int64_t count, bool in_place) {
    const int n = memory_.members;
    const std::uint64_t number = item.number;
    const SymmetricWindow* window = item.region >= 0 ? &window_ : nullptr;
    const auto buffers = [&](std::int64_t in, std::int64_t out) {
      std::byte* first = memory(item, item.in, static_cast<std::size_t>(in) * sizeof(T), false);
      std::byte* second = memory(item, item.out, static_cast<std::size_t>(out) * sizeof(T), true);
      item.result = second;
      item.expected.assign(static_cast<std::size_t>(out) * sizeof(T), std::byte{0});
      call.in = {first, in, type, MemoryKind::host, window};
      call.out = {second, out, type, MemoryKind::host, window};
    };
    const auto input = [&](std::int64_t i) {
      put(const_cast<std::byte*>(call.in.data), i, static_cast<T>(value(self_, number, i)));
    };
    switch (call.operation) {
      case Operation::broadcast:
        buffers(0, count);
        for (std::int64_t i = 0; i < count; ++i) {
          put(call.out.data, i,
              static_cast<T>(call.root.value() == self_ ? value(self_, number, i) : 0));
          put(item.expected.data(), i,
              static_cast<T>(value(static_cast<int>(call.root.value()), number, i)));
        }
        return;
      case Operation::all_reduce:
        buffers(count, count);
        if (in_place) call.in.data = call.out.data;
        for (std::int64_t i = 0; i < count; ++i) {
          input(i);
          put(item.expected.data(), i, reduced<T>(call.reduction, n, number, i));
        }
        return;
      case Operation::all_gather:
        buffers(count, count * n);
        if (in_place) call.in.data = call.out.slice(self_ * count, 0).data;
        for (std::int64_t i = 0; i < count; ++i) {
          input(i);
          for (int k = 0; k < n; ++k)
            put(item.expected.data(), k * count + i, static_cast<T>(value(k, number, i)));
        }
        return;
      case Operation::reduce_scatter:
        buffers(count * n, count);
        for (std::int64_t i = 0; i < count * n; ++i) input(i);
        for (std::int64_t i = 0; i < count; ++i)
          put(item.expected.data(), i, reduced<T>(call.reduction, n, number, self_ * count + i));
        return;
      case Operation::all_to_all:
        buffers(count * n, count * n);
        if (in_place) call.in.data = call.out.data;
        for (std::int64_t i = 0; i < count * n; ++i) input(i);
        for (int k = 0; k < n; ++k)
          for (std::int64_t i = 0; i < count; ++i)
            put(item.expected.data(), k * count + i,
                static_cast<T>(value(k, number, self_ * count + i)));
        return;
      case Operation::reduce:
        buffers(count, count);
        if (in_place) call.in.data = call.out.data;
        for (std::int64_t i = 0; i < count; ++i) {
          input(i);
          if (!in_place)
            put(call.out.data, i, T{9});  // at members other than the root it does not change
          put(item.expected.data(), i,
              call.root.value() == self_ ? reduced<T>(call.reduction, n, number, i)
              : in_place                 ? static_cast<T>(value(self_, number, i))
                                         : T{9});
        }
        return;
      case Operation::gather:
        buffers(count, count * n);
        for (std::int64_t i = 0; i < count; ++i) {
          input(i);
          for (int k = 0; k < n && call.root.value() == self_; ++k)
            put(item.expected.data(), k * count + i, static_cast<T>(value(k, number, i)));
        }
        return;
      case Operation::scatter:
        buffers(call.root.value() == self_ ? count * n : 0, count);
        for (std::int64_t i = 0; i < call.in.count; ++i) input(i);
        for (std::int64_t i = 0; i < count; ++i)
          put(item.expected.data(), i,
              static_cast<T>(
                  value(static_cast<int>(call.root.value()), number, self_ * count + i)));
        return;
      default:
        return buffers(0, 0);
    }
  }

  void finish(std::size_t which) {
    Item& item = *flying_[which];
    while (!item.is_complete()) {
      advance();
      if (!item.is_complete()) std::this_thread::yield();
    }
    if (!item.expected.empty() || item.call.operation == Operation::barrier) {
      Runs& runs = runs_[item.algorithm()];
      ++runs.all;
      if (item.is_fast) ++runs.fast;
    }
    if (!item.expected.empty() &&
        std::memcmp(item.result, item.expected.data(), item.expected.size()) != 0) {
      if (++wrong_ == 1)
        std::fprintf(stderr, "member %d of %d: operation %llu (%s) gave wrong data\n", self_,
                     memory_.members, static_cast<unsigned long long>(item.number),
                     name_of(item.algorithm()).c_str());
    }
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  SharedMemory& memory_;
  int self_;
  std::mt19937 same_, own_;
  shm::Engine engine_;
  SymmetricWindow window_;
  std::deque<std::unique_ptr<Item>> flying_;
  RunsOf runs_;
  std::uint64_t wrong_ = 0;
  std::uint64_t allocated_ = 0;
};

bool fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return false;
}

// The table of algorithms is what choose() and can() expect.
bool check_table() {
  bool good = true;
  std::set<std::string_view> names;
  for (std::size_t o = 0; o < operation_count; ++o) {
    const auto operation = static_cast<Operation>(o);
    const shm::Algorithm* last = nullptr;
    bool has_ended = false;
    for (const shm::Algorithm* algorithm : shm::choices_of(operation)) {
      if (algorithm == nullptr) {
        has_ended = true;
        continue;
      }
      last = algorithm;
      const std::string name{algorithm->name};
      if (has_ended) good = fail(name + " is behind the end of its row of the table");
      if (algorithm->operation != operation)
        good = fail(name + " is in the row of operation " + std::to_string(o));
      if (!names.insert(algorithm->name).second) good = fail("two algorithms are called " + name);
      if (algorithm->payload == nullptr) good = fail(name + " has no payload");
    }
    if (last != nullptr && (last->applies != nullptr || last->is_symmetric != nullptr))
      good = fail(std::string{last->name} + " is the last of its row, but not for every call");
    if (!has_ended) good = fail("a row of the table has no null pointer at its end");
    const shm::Algorithm* small = shm::small_algorithms[o];
    if (small != nullptr && (small->operation != operation || small->run_small == nullptr ||
                             small->second.has_value() || small->is_symmetric != nullptr))
      good = fail(std::string{small->name} + " cannot be the small algorithm of operation " +
                  std::to_string(o));
  }
  return good;
}

// Every algorithm must have run. With one member the fast path always succeeds, so there every
// small algorithm must have run both ways; with more it depends on who comes first.
bool check_runs(const RunsOf& runs, int members) {
  bool good = true;
  for (const shm::Choices& choices : shm::algorithms)
    for (const shm::Algorithm* algorithm : choices) {
      if (algorithm == nullptr) continue;
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
  constexpr std::int64_t count = 3 * static_cast<std::int64_t>(slot_bytes / sizeof(std::int32_t));
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
    engines.emplace_back(memory.areas, std::vector<std::int32_t>{0, 1}, k, slot_bytes,
                         shm::Limits{}, &memory);
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

bool run(int members, std::uint64_t count, unsigned seed) {
  SharedMemory memory{members};
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> wrong(static_cast<std::size_t>(members));
  std::vector<std::uint64_t> allocated(static_cast<std::size_t>(members));
  std::vector<RunsOf> runs(static_cast<std::size_t>(members));
  for (int k = 0; k < members; ++k)
    threads.emplace_back([&, k] {
      Member member{memory, k, seed};
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
  std::printf("%d members, %llu operations, seed %u: %llu wrong, %llu allocations\n", members,
              static_cast<unsigned long long>(count), seed,
              static_cast<unsigned long long>(all_wrong),
              static_cast<unsigned long long>(all_allocated));
  // Few operations need not reach every algorithm.
  const bool reached_all = count < 2000 || check_runs(all_runs, members);
  return all_wrong == 0 && all_allocated == 0 && reached_all;
}

}  // namespace

int main(int argc, char** argv) {
  bool good = check_table();
  good = check_late_reader() && good;
  if (argc > 2)
    return run(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10),
               argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1) &&
                   good
               ? 0
               : 1;
  for (const int members : {1, 2, 3, 4, 5, 8})
    good = run(members, 2000, static_cast<unsigned>(members)) && good;
  return good ? 0 : 1;
}
