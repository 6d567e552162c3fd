// The protocol of shared memory between the threads of one process: random operations, sizes, types
// and orders of completion against a plain reference. Built a second time with ThreadSanitizer.
//
//   test_shm_engine [MEMBERS OPERATIONS [SEED]]     without arguments: a short run of each number
//   of members
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "transport/detail/reduce_kernels.hpp"
#include "transport/detail/shm_engine.hpp"

using namespace rankmesh;

namespace {

constexpr std::size_t slot_bytes = shm::medium_bytes + 1024;
constexpr std::size_t region_bytes = 131072;  // of symmetric memory, per operation under way
constexpr int regions = 8;

constexpr DataType types[] = {
    DataType::int8,   DataType::uint8, DataType::int16,  DataType::uint16,  DataType::int32,
    DataType::uint32, DataType::int64, DataType::uint64, DataType::float32, DataType::float64};
constexpr ReduceOp reductions[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max,
                                   ReduceOp::avg};
constexpr Operation operations[] = {
    Operation::barrier,    Operation::broadcast,      Operation::all_reduce,
    Operation::all_gather, Operation::reduce_scatter, Operation::all_to_all,
    Operation::reduce,     Operation::gather,         Operation::scatter};

std::byte* aligned(std::vector<std::byte>& memory, std::size_t bytes) {
  memory.assign(bytes + shm::line, std::byte{0});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + (shm::line - address % shm::line) % shm::line;
}

struct Ground {
  explicit Ground(int n) : members{n} {
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
  T result = static_cast<T>(value(0, operation, i));
  for (int k = 1; k < members; ++k) {
    const T v = static_cast<T>(value(k, operation, i));
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        result = static_cast<T>(result + v);
        break;
      case ReduceOp::prod:
        result = static_cast<T>(result * v);
        break;
      case ReduceOp::min:
        result = v < result ? v : result;
        break;
      case ReduceOp::max:
        result = v > result ? v : result;
        break;
    }
  }
  return op == ReduceOp::avg ? static_cast<T>(result / static_cast<T>(members)) : result;
}

struct Item {
  Call call;
  shm::Progress progress;
  std::uint64_t number = 0;
  std::vector<std::byte> in, out, expected;
  std::byte* result = nullptr;
  int region = -1;
};

class Member {
 public:
  Member(Ground& ground, int self, unsigned seed)
      : ground_{ground},
        self_{self},
        same_{seed},
        own_{seed + 1 + static_cast<unsigned>(self)},
        engine_{ground.areas,
                locals(ground.members),
                self,
                slot_bytes,
                {.flat_bytes = 1000, .symmetric_bytes = 64},
                &ground} {
    window_.base = ground.base;
    window_.groups = {&ground};
    window_.stride = regions * region_bytes;
    window_.bytes = window_.stride;
    window_.local_rank = self;
  }

  void run(std::uint64_t count) {
    for (std::uint64_t number = 0; number < count; ++number) {
      start(number);
      if (own_() % 4 == 0) engine_.advance();
      while (flying_.size() >= regions || (!flying_.empty() && own_() % 3 == 0))
        finish(own_() % flying_.size());
    }
    while (!flying_.empty()) finish(own_() % flying_.size());
  }
  [[nodiscard]] std::uint64_t wrong() const { return wrong_; }

 private:
  static std::vector<std::int32_t> locals(int n) {
    std::vector<std::int32_t> result;
    for (int k = 0; k < n; ++k) result.push_back(k);
    return result;
  }

  void start(std::uint64_t number) {
    const int n = ground_.members;
    Item& item = *flying_.emplace_back(std::make_unique<Item>());
    item.number = number;
    Call& call = item.call;
    call.operation = operations[same_() % std::size(operations)];
    const DataType type = types[same_() % std::size(types)];
    call.reduction = reductions[same_() % std::size(reductions)];
    call.root = static_cast<std::int64_t>(same_() % static_cast<unsigned>(n));
    const std::int64_t sizes[] = {0, 1, 3, 8, 40, 200, 900};
    const auto count =
        sizes[same_() % (same_() % 4 == 0 ? 7 : 5)] + static_cast<std::int64_t>(same_() % 3);
    const bool in_place = same_() % 2 == 0;
    const bool symmetric = same_() % 3 == 0;
    // Members may use different stretches of it, so each takes one that is free here.
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
    // The short way, where it can be gone; it may end in the middle.
    if (own_() % 2 == 0 && engine_.run_small(item.progress, call, static_cast<int>(own_() % 50)))
      return;
    if (item.progress.call == nullptr) engine_.begin(item.progress, call);
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
    const int n = ground_.members;
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
          if (!in_place) put(call.out.data, i, T{9});  // elsewhere than at the root it stays
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
    while (!item.progress.is_complete()) {
      engine_.advance();
      if (!item.progress.is_complete()) std::this_thread::yield();
    }
    if (!item.expected.empty() &&
        std::memcmp(item.result, item.expected.data(), item.expected.size()) != 0) {
      if (++wrong_ == 1)
        std::fprintf(stderr, "member %d of %d: operation %llu (%d, way %d) gave wrong data\n",
                     self_, ground_.members, static_cast<unsigned long long>(item.number),
                     static_cast<int>(item.call.operation), static_cast<int>(item.progress.way));
    }
    flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  Ground& ground_;
  int self_;
  std::mt19937 same_, own_;
  shm::Engine engine_;
  SymmetricWindow window_;
  std::deque<std::unique_ptr<Item>> flying_;
  std::uint64_t wrong_ = 0;
};

bool run(int members, std::uint64_t count, unsigned seed) {
  Ground ground{members};
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> wrong(static_cast<std::size_t>(members));
  for (int k = 0; k < members; ++k)
    threads.emplace_back([&, k] {
      Member member{ground, k, seed};
      member.run(count);
      wrong[static_cast<std::size_t>(k)] = member.wrong();
    });
  for (auto& thread : threads) thread.join();
  std::uint64_t all = 0;
  for (const std::uint64_t w : wrong) all += w;
  std::printf("%d members, %llu operations, seed %u: %llu wrong\n", members,
              static_cast<unsigned long long>(count), seed, static_cast<unsigned long long>(all));
  return all == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2)
    return run(std::atoi(argv[1]), std::strtoull(argv[2], nullptr, 10),
               argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 1)
               ? 0
               : 1;
  bool good = true;
  for (const int members : {1, 2, 3, 4, 5, 8})
    good = run(members, 2000, static_cast<unsigned>(members)) && good;
  return good ? 0 : 1;
}
