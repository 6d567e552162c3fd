// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm_random_call.hpp"

#include <cstring>
#include <type_traits>

#include "support/reductions.hpp"

namespace rankmesh_test {

using rankmesh::DataType;
using rankmesh::MemoryKind;
using rankmesh::Operation;
namespace shm = rankmesh::shm;

namespace {

// The elements between two blocks.
constexpr std::int64_t gap = 2;

std::byte* aligned(std::vector<std::byte>& memory, std::size_t bytes) {
  memory.assign(bytes + shm::line, std::byte{0});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + (shm::line - address % shm::line) % shm::line;
}

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

// Fills the buffers of an operation with elements of one type.
template <class T>
class Filler {
 public:
  Filler(RandomCall& random, const Place& place, DataType type, std::int64_t count, bool in_place)
      : random_{random},
        place_{place},
        type_{type},
        count_{count},
        in_place_{in_place},
        root_{static_cast<int>(random.call.root.value())} {}

  void fill_blocks() {
    switch (random_.call.operation) {
      case Operation::all_gather:
        return all_gather_v();
      case Operation::gather:
        return gather_v();
      case Operation::scatter:
        return scatter_v();
      case Operation::reduce_scatter:
        return reduce_scatter_v();
      default:
        return all_to_all_v();
    }
  }
  void fill() {
    switch (random_.call.operation) {
      case Operation::broadcast:
        return broadcast();
      case Operation::all_reduce:
        return all_reduce(place_.members);
      case Operation::scan:
        return all_reduce(place_.self + 1);
      case Operation::exscan:
        return all_reduce(place_.self);
      case Operation::all_gather:
        return all_gather();
      case Operation::reduce_scatter:
        return reduce_scatter();
      case Operation::all_to_all:
        return all_to_all();
      case Operation::reduce:
        return reduce();
      case Operation::gather:
        return gather();
      case Operation::scatter:
        return scatter();
      default:
        return buffers(0, 0);
    }
  }

 private:
  [[nodiscard]] bool is_root() const { return root_ == place_.self; }
  [[nodiscard]] T value_of(int member, std::int64_t i) const {
    return static_cast<T>(value(member, random_.number, i));
  }
  [[nodiscard]] T reduced_value(std::int64_t i) const { return reduced_value(i, place_.members); }
  [[nodiscard]] T reduced_value(std::int64_t i, std::int64_t members) const {
    return reduced<T>(random_.call.reduction, members, [&](std::int64_t k) {
      return value(static_cast<int>(k), random_.number, i);
    });
  }

  // Half a region each for in and out where the memory is symmetric.
  std::byte* memory(std::vector<std::byte>& plain, std::size_t bytes, bool second) {
    plain.assign(bytes, std::byte{0});
    if (random_.region < 0) return plain.data();
    std::byte* at = place_.window->own() + static_cast<std::size_t>(random_.region) * region_bytes +
                    (second ? region_bytes / 2 : 0);
    std::memset(at, 0, bytes);
    return at;
  }
  void buffers(std::int64_t in, std::int64_t out) {
    const rankmesh::SymmetricWindow* window = random_.region >= 0 ? place_.window : nullptr;
    std::byte* first = memory(random_.in, static_cast<std::size_t>(in) * sizeof(T), false);
    std::byte* second = memory(random_.out, static_cast<std::size_t>(out) * sizeof(T), true);
    random_.result = second;
    random_.expected.assign(static_cast<std::size_t>(out) * sizeof(T), std::byte{0});
    random_.call.in = {first, in, type_, MemoryKind::host, window};
    random_.call.out = {second, out, type_, MemoryKind::host, window};
  }
  void use_out_as_in() {
    if (in_place_) random_.call.in.data = random_.call.out.data;
  }
  void input(std::int64_t i) {
    put(const_cast<std::byte*>(random_.call.in.data), i, value_of(place_.self, i));
  }
  void expect(std::int64_t i, T v) { put(random_.expected.data(), i, v); }

  void broadcast() {
    buffers(0, count_);
    for (std::int64_t i = 0; i < count_; ++i) {
      put(random_.call.out.data, i, is_root() ? value_of(place_.self, i) : T{0});
      expect(i, value_of(root_, i));
    }
  }
  // Without members, the result consists of zeros.
  void all_reduce(std::int64_t members) {
    buffers(count_, count_);
    use_out_as_in();
    for (std::int64_t i = 0; i < count_; ++i) {
      input(i);
      expect(i, members == 0 ? T{} : reduced_value(i, members));
    }
  }
  void all_gather() {
    buffers(count_, count_ * place_.members);
    if (in_place_) random_.call.in.data = random_.call.out.slice(place_.self * count_, 0).data;
    for (std::int64_t i = 0; i < count_; ++i) {
      input(i);
      for (int k = 0; k < place_.members; ++k) expect(k * count_ + i, value_of(k, i));
    }
  }
  void reduce_scatter() {
    buffers(count_ * place_.members, count_);
    for (std::int64_t i = 0; i < count_ * place_.members; ++i) input(i);
    for (std::int64_t i = 0; i < count_; ++i) expect(i, reduced_value(place_.self * count_ + i));
  }
  void all_to_all() {
    buffers(count_ * place_.members, count_ * place_.members);
    use_out_as_in();
    for (std::int64_t i = 0; i < count_ * place_.members; ++i) input(i);
    for (int k = 0; k < place_.members; ++k)
      for (std::int64_t i = 0; i < count_; ++i)
        expect(k * count_ + i, value_of(k, place_.self * count_ + i));
  }
  void reduce() {
    const T untouched{9};  // at members other than the root `out` does not change
    buffers(count_, count_);
    use_out_as_in();
    for (std::int64_t i = 0; i < count_; ++i) {
      input(i);
      if (!in_place_) put(random_.call.out.data, i, untouched);
      expect(i, is_root() ? reduced_value(i) : in_place_ ? value_of(place_.self, i) : untouched);
    }
  }
  void gather() {
    buffers(count_, count_ * place_.members);
    for (std::int64_t i = 0; i < count_; ++i) {
      input(i);
      for (int k = 0; k < place_.members && is_root(); ++k) expect(k * count_ + i, value_of(k, i));
    }
  }
  void scatter() {
    buffers(is_root() ? count_ * place_.members : 0, count_);
    for (std::int64_t i = 0; i < random_.call.in.count; ++i) input(i);
    for (std::int64_t i = 0; i < count_; ++i) expect(i, value_of(root_, place_.self * count_ + i));
  }

  // The elements that `from` sends to `to`. In most v-forms, the blocks of member k are those that
  // member 0 sends to k.
  [[nodiscard]] std::int64_t count(int from, int to) const {
    const std::uint64_t random =
        random_.number * 31 + static_cast<std::uint64_t>(from * 17 + to * 5);
    if (random % 3 == 0) return 0;
    return static_cast<std::int64_t>(random * 7919 % static_cast<std::uint64_t>(count_ + 1));
  }
  struct Layout {
    rankmesh::Blocks blocks;
    std::int64_t total;
    [[nodiscard]] std::int64_t count(int k) const {
      return blocks.counts()[static_cast<std::size_t>(k)];
    }
    [[nodiscard]] std::int64_t begin(int k) const {
      return blocks.displacements()[static_cast<std::size_t>(k)];
    }
  };
  template <class CountOf>
  [[nodiscard]] Layout layout(CountOf&& count_of) const {
    std::vector<std::int64_t> counts, displacements;
    std::int64_t end = 0;
    for (int k = 0; k < place_.members; ++k) {
      counts.push_back(count_of(k));
      displacements.push_back(end);
      end += counts.back() + gap;
    }
    return {rankmesh::Blocks{counts, displacements}, end};
  }
  [[nodiscard]] Layout layout_of_members() const {
    return layout([&](int k) { return count(0, k); });
  }
  // A block of the output of member `self` that member k has sent from place `from` on.
  void expect_block(std::int64_t begin, std::int64_t count, int k, std::int64_t from) {
    for (std::int64_t i = 0; i < count; ++i) expect(begin + i, value_of(k, from + i));
  }

  void all_gather_v() {
    const Layout whole = layout_of_members();
    buffers(whole.count(place_.self), whole.total);
    random_.call.out_blocks = &random_.out_blocks.emplace(whole.blocks);
    if (in_place_) random_.call.in.data = random_.call.out.slice(whole.begin(place_.self), 0).data;
    for (std::int64_t i = 0; i < whole.count(place_.self); ++i) input(i);
    for (int k = 0; k < place_.members; ++k) expect_block(whole.begin(k), whole.count(k), k, 0);
  }
  void gather_v() {
    const Layout whole = layout_of_members();
    buffers(whole.count(place_.self), is_root() ? whole.total : 0);
    random_.call.out_blocks = &random_.out_blocks.emplace(whole.blocks);
    for (std::int64_t i = 0; i < whole.count(place_.self); ++i) input(i);
    for (int k = 0; k < place_.members && is_root(); ++k)
      expect_block(whole.begin(k), whole.count(k), k, 0);
  }
  void scatter_v() {
    const Layout whole = layout_of_members();
    buffers(is_root() ? whole.total : 0, whole.count(place_.self));
    random_.call.in_blocks = &random_.in_blocks.emplace(whole.blocks);
    for (std::int64_t i = 0; i < random_.call.in.count; ++i) input(i);
    expect_block(0, whole.count(place_.self), root_, whole.begin(place_.self));
  }
  void reduce_scatter_v() {
    const Layout whole = layout_of_members();
    buffers(whole.total, whole.count(place_.self));
    random_.call.in_blocks = &random_.in_blocks.emplace(whole.blocks);
    for (std::int64_t i = 0; i < whole.total; ++i) input(i);
    for (std::int64_t i = 0; i < whole.count(place_.self); ++i)
      expect(i, reduced_value(whole.begin(place_.self) + i));
  }
  void all_to_all_v() {
    const auto sent_by = [&](int from) { return layout([&](int to) { return count(from, to); }); };
    const Layout sent = sent_by(place_.self);
    const Layout received = layout([&](int from) { return count(from, place_.self); });
    buffers(sent.total, received.total);
    random_.call.in_blocks = &random_.in_blocks.emplace(sent.blocks);
    random_.call.out_blocks = &random_.out_blocks.emplace(received.blocks);
    for (std::int64_t i = 0; i < sent.total; ++i) input(i);
    for (int k = 0; k < place_.members; ++k)
      expect_block(received.begin(k), received.count(k), k, sent_by(k).begin(place_.self));
  }

  RandomCall& random_;
  const Place& place_;
  DataType type_;
  std::int64_t count_;
  bool in_place_;
  int root_;
};

}  // namespace

SharedMemory::SharedMemory(int n) : members{n} {
  const auto un = static_cast<std::size_t>(n);
  std::byte* at = aligned(area_memory, un * shm::Area::size(slot_bytes));
  for (std::size_t k = 0; k < un; ++k) areas.push_back(at + k * shm::Area::size(slot_bytes));
  base = aligned(window_memory, un * regions * region_bytes);
}

void fill_blocks(RandomCall& random, const Place& place, DataType type, std::int64_t count,
                 bool in_place) {
  rankmesh::visit(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>)
      Filler<T>{random, place, type, count, in_place}.fill_blocks();
  });
}

const shm::Algorithm* RandomCall::algorithm() const {
  return is_fast ? shm::small_algorithms[static_cast<std::size_t>(call.operation)]
                 : progress.algorithm;
}

std::string RandomCall::name_of_algorithm() const {
  return algorithm() == nullptr ? "no algorithm" : std::string{algorithm()->name};
}

void fill(RandomCall& random, const Place& place, DataType type, std::int64_t count,
          bool in_place) {
  rankmesh::visit(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>) Filler<T>{random, place, type, count, in_place}.fill();
  });
}

}  // namespace rankmesh_test
