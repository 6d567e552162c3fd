// SPDX-License-Identifier: BSD-3-Clause
// Tests by brute force that differing calls are found in shared memory: one member of a group makes
// another call than the others, for every pair of calls. The members are threads of one process.
// The test is built a second time with ThreadSanitizer.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/detail/pause.hpp"
#include "transport/shm/algorithms.hpp"
#include "transport/shm/engine.hpp"
#include "transport/shm/meeting.hpp"

using namespace rankmesh;

namespace {

constexpr std::size_t slot_bytes = shm::medium_bytes + 1024;
constexpr int most_members = 4;
constexpr std::int64_t large = 3 * static_cast<std::int64_t>(slot_bytes) / 4 + 1;  // several pieces

// A call that all members make alike, with memory of its own.
struct Variant {
  Operation operation;
  std::int64_t count;  // of one block
  std::int64_t root = 0;
  ReduceOp reduction = ReduceOp::sum;
  DataType type = DataType::int32;
  bool is_meeting = false;  // MPI will carry the call
  bool has_blocks = false;  // a v-form, in which the blocks of all members have `count` elements

  [[nodiscard]] std::string name() const {
    return std::to_string(static_cast<int>(operation)) + "/" + std::to_string(count) + "/root " +
           std::to_string(root) + "/type " + std::to_string(static_cast<int>(type)) +
           (is_meeting ? "/meeting" : "") + (has_blocks ? "/blocks" : "");
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> all{{Operation::barrier, 0}};
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{3}, large}) {
    for (const Operation operation : {Operation::all_reduce, Operation::all_gather,
                                      Operation::reduce_scatter, Operation::all_to_all})
      all.push_back({operation, count});
    for (const Operation operation :
         {Operation::broadcast, Operation::reduce, Operation::gather, Operation::scatter})
      for (const std::int64_t root : {0, 1}) all.push_back({operation, count, root});
  }
  all.push_back({Operation::all_reduce, 3, 0, ReduceOp::max});
  all.push_back({Operation::all_reduce, 3, 0, ReduceOp::sum, DataType::float32});
  all.push_back({Operation::broadcast, 3, 0, ReduceOp::sum, DataType::float32});
  for (const Operation operation :
       {Operation::barrier, Operation::all_reduce, Operation::broadcast})
    all.push_back({operation, operation == Operation::barrier ? 0 : 3, 0, ReduceOp::sum,
                   DataType::int32, true});
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{3}, large})
    for (const Operation operation : {Operation::all_gather, Operation::reduce_scatter,
                                      Operation::gather, Operation::scatter, Operation::all_to_all})
      for (const bool is_meeting : {false, true})
        all.push_back({operation, count, 0, ReduceOp::sum, DataType::int32, is_meeting, true});
  return all;
}

class Buffers {
 public:
  Buffers(const Variant& variant, std::int64_t members, std::int64_t self)
      : in_(static_cast<std::size_t>(variant.count * members * 8)), out_(in_.size()) {
    const std::int64_t n = variant.count;
    const bool is_rooted_in = variant.operation == Operation::scatter;
    const bool has_many_in = variant.operation == Operation::reduce_scatter ||
                             variant.operation == Operation::all_to_all ||
                             (is_rooted_in && self == variant.root);
    const bool has_many_out = variant.operation == Operation::all_gather ||
                              variant.operation == Operation::gather ||
                              variant.operation == Operation::all_to_all;
    call.operation = variant.operation;
    call.reduction = variant.reduction;
    call.root = RankInGroup{variant.root};
    call.in = {in_.data(),
               is_rooted_in && !has_many_in ? 0
               : has_many_in                ? n * members
                                            : n,
               variant.type};
    call.out = {out_.data(), has_many_out ? n * members : n, variant.type};
    if (variant.operation == Operation::barrier) call.in.count = call.out.count = 0;
    if (!variant.has_blocks) return;
    blocks_ = std::vector<std::int64_t>(static_cast<std::size_t>(members), n);
    const bool are_in_out =
        variant.operation == Operation::all_gather || variant.operation == Operation::gather;
    if (!are_in_out) call.in_blocks = &blocks_;
    if (are_in_out || variant.operation == Operation::all_to_all) call.out_blocks = &blocks_;
  }
  Call call;

 private:
  Blocks blocks_;
  std::vector<std::byte> in_, out_;
};

// The memory of a group.
struct Memory {
  explicit Memory(int members) : bytes(static_cast<std::size_t>(members) * area + shm::line) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    std::byte* begin = bytes.data() + (shm::line - address % shm::line) % shm::line;
    for (int k = 0; k < members; ++k) areas.push_back(begin + static_cast<std::size_t>(k) * area);
  }
  static constexpr std::size_t area = shm::Area::size(slot_bytes);
  std::vector<std::byte> bytes;
  std::vector<std::byte*> areas;
};

// Runs a call until it is complete or a member has found a difference.
void run(shm::Engine& engine, const Call& call, std::atomic<bool>& is_found, bool is_fast,
         bool is_meeting = false) {
  shm::Progress progress{};
  const shm::Meeting met{call, false};
  const shm::Outcome outcome = !is_fast     ? shm::Outcome::not_begun
                               : is_meeting ? shm::meeting.run_small(engine, progress, met, 20)
                                            : shm::run_small(engine, progress, call, 20);
  if (outcome == shm::Outcome::complete) return;
  if (engine.difference() == 0 && outcome == shm::Outcome::not_begun)
    is_meeting ? engine.begin(progress, met, shm::meeting) : engine.begin(progress, call);
  while (engine.difference() == 0 && !is_found && !progress.is_complete()) {
    engine.advance();
    engine.look_for_closed_members();
    std::this_thread::yield();
  }
  if (engine.difference() != 0) is_found = true;
}

// A good call, then one that differs on the last member, then the close of the group. Returns
// whether some member has found the difference.
bool finds(const Variant& usual, const Variant& odd, int members, bool is_fast) {
  Memory memory{members};
  std::atomic<bool> is_found{false};
  std::atomic<int> closing{0};
  std::vector<std::thread> threads;
  for (int self = 0; self < members; ++self)
    threads.emplace_back([&, self] {
      std::vector<std::int32_t> locals(static_cast<std::size_t>(members));
      shm::Engine engine{memory.areas, locals, self, slot_bytes, shm::Limits{}, &memory};
      Buffers good{{Operation::all_reduce, 3}, members, self};
      run(engine, good.call, is_found, is_fast);
      const Variant& own = self == members - 1 ? odd : usual;
      Buffers differing{own, members, self};
      run(engine, differing.call, is_found, is_fast, own.is_meeting);
      engine.leave({});
      ++closing;
      while (closing < members) std::this_thread::yield();
      if (!is_found && !engine.compare_at_close()) is_found = true;
    });
  for (std::thread& thread : threads) thread.join();
  return is_found;
}

// Whether two calls must be told apart.
bool differ(const Variant& a, const Variant& b) {
  const auto call_of = [](const Variant& variant) {
    const Buffers buffers{variant, 2, 0};
    return detail::describe(buffers.call, variant.operation);
  };
  return a.is_meeting != b.is_meeting || !call_of(a).matches(call_of(b)) ||
         (a.has_blocks && a.count != b.count);
}

// Whether members agree whose counts take several steps: some pairs of counts are then in different
// steps, and no step may compare words that it does not carry.
bool agree_in_several_steps() {
  constexpr int members = 10;  // 21 words
  constexpr std::size_t small_slot = shm::line;
  constexpr std::size_t area = shm::Area::size(small_slot);
  std::vector<std::byte> bytes(members * area + shm::line, std::byte{0x55});
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::byte* begin = bytes.data() + (shm::line - address % shm::line) % shm::line;
  std::vector<std::byte*> areas;
  for (std::size_t k = 0; k < members; ++k) {
    areas.push_back(begin + k * area);
    std::memset(areas[k], 0, shm::Area::payload_offset(0, shm::medium_bytes, small_slot));
  }
  std::atomic<bool> is_found{false};
  std::vector<std::thread> threads;
  for (int self = 0; self < members; ++self)
    threads.emplace_back([&, self] {
      shm::Engine engine{areas, std::vector<std::int32_t>(members), self, small_slot, shm::Limits{},
                         &areas};
      std::vector<std::int64_t> sent, received;
      for (int k = 0; k < members; ++k) {
        sent.push_back(100 * self + k);
        received.push_back(100 * k + self);
      }
      const Blocks in{sent}, out{received};
      Call call{.operation = Operation::all_to_all, .in_blocks = &in, .out_blocks = &out};
      run(engine, call, is_found, false, true);
    });
  for (std::thread& thread : threads) thread.join();
  return !is_found;
}

// Whether all members draw the same conclusion from a meeting that the first one gives up while the
// last one comes. The other members may be in MPI's operation when they have met.
bool agree_on_end(int members, bool is_fast, unsigned round) {
  Memory memory{members};
  std::atomic<int> completed{0};
  std::vector<std::thread> threads;
  for (int self = 0; self < members; ++self)
    threads.emplace_back([&, self] {
      std::vector<std::int32_t> locals(static_cast<std::size_t>(members));
      shm::Engine engine{memory.areas, locals, self, slot_bytes, shm::Limits{}, &memory};
      Buffers buffers{{Operation::barrier, 0}, members, self};
      const shm::Meeting met{buffers.call, false};
      shm::Progress progress{};
      const bool is_first = self == 0;
      const unsigned pauses =
          is_first || self == members - 1 ? round * 7919 % (is_first ? 61 : 53) : 0;
      for (unsigned i = 0; i < pauses; ++i) detail::pause();
      const shm::Outcome outcome =
          is_fast ? shm::meeting.run_small(engine, progress, met, 1) : shm::Outcome::not_begun;
      if (outcome == shm::Outcome::not_begun && is_fast) return;  // it has ended
      if (outcome == shm::Outcome::not_begun) engine.begin(progress, met, shm::meeting);
      engine.advance();
      bool is_complete = outcome == shm::Outcome::complete || progress.is_complete();
      if (is_first && !is_complete && engine.finding().begin(progress.last_step()))
        return engine.finding().end(shm::Finding::timed_out);
      while (!is_complete) {
        const bool has_ended = engine.is_halted();
        engine.advance();
        is_complete = progress.is_complete();
        if (has_ended && !is_complete) return;
        std::this_thread::yield();
      }
      ++completed;
    });
  for (std::thread& thread : threads) thread.join();
  return completed == 0 || completed == members;
}

}  // namespace

// test_shm_differences [N]: only every Nth pair
int main(int argc, char** argv) {
  const int stride = argc > 1 ? std::atoi(argv[1]) : 1;
  const std::vector<Variant> all = variants();
  int pairs = 0, wrong = 0, number = 0;
  for (const Variant& usual : all)
    for (const Variant& odd : all)
      for (int members = 2; members <= most_members; ++members) {
        if (++number % stride != 0) continue;
        ++pairs;
        const bool is_fast = number % 2 == 0;
        const bool expected = differ(usual, odd);
        if (finds(usual, odd, members, is_fast) == expected) continue;
        if (++wrong <= 20)
          std::fprintf(stderr, "%s against %s, %d members: %s\n", usual.name().c_str(),
                       odd.name().c_str(), members,
                       expected ? "the difference is not found" : "there is no difference");
      }
  if (!agree_in_several_steps()) {
    ++wrong;
    std::fprintf(stderr, "counts in several steps: there is no difference\n");
  }
  constexpr unsigned rounds = 3000;
  for (unsigned round = 0; round < rounds; ++round)
    if (!agree_on_end(2 + static_cast<int>(round % 3), round % 2 == 0, round) && ++wrong <= 20)
      std::fprintf(stderr, "a meeting is complete on some members only\n");
  std::printf("%d pairs of calls, %d wrong\n", pairs, wrong);
  return wrong == 0 ? 0 : 1;
}
