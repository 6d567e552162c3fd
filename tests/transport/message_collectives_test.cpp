// SPDX-License-Identifier: BSD-3-Clause
// Collectives as messages between two members, against the collectives of MPI.
#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "rankmesh/mpi/members.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/transport/mpi_transport.hpp"
#include "support/mpi_world.hpp"

namespace {

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using Values = std::vector<std::uint64_t>;

// Associative, but not commutative: x -> ax + b, one after the other.
struct Affine {
  std::uint32_t a, b;
};
using Composition = detail::UserReductionOf<Affine, Affine (*)(const Affine&, const Affine&)>;
Affine compose(const Affine& f, const Affine& g) { return {f.a * g.a, f.b * g.a + g.b}; }

// The world in reverse order, on its own communicator and as a part of MPI_COMM_WORLD.
struct Transports {
  Transports() {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.rbegin(), ranks.rend(), 0);
    const mpi::CommunicatorView world{MPI_COMM_WORLD};
    own = mpi::create_group(world, ranks, 1);
    self = own.view().rank();
    by_mpi = std::make_unique<MpiTransport>(own.view());
    by_messages = std::make_unique<MpiTransport>(mpi::Members{world, ranks, self, 1}, largest);
  }
  ~Transports() { own.free(); }

  static constexpr std::int64_t largest = 100003;  // several counts for the largest messages
  mpi::Communicator own;
  int self = 0;
  std::unique_ptr<MpiTransport> by_mpi, by_messages;
};

// A call with its memory. All members make the same call, with values of their own.
struct Case {
  Call call{};
  Values in, out;
  Blocks in_blocks, out_blocks;
  Composition composition{compose, Commutative::no};
  std::int64_t count = 0, members = 0, self = 0;

  Case(std::mt19937& same, const Transports& transports, std::int64_t elements, bool is_v)
      : count{elements}, members{size()}, self{transports.self} {
    constexpr Operation operations[] = {
        Operation::barrier, Operation::broadcast,  Operation::reduce,
        Operation::gather,  Operation::all_gather, Operation::reduce_scatter,
        Operation::scatter, Operation::all_reduce, Operation::all_to_all};
    constexpr Operation with_blocks[] = {Operation::all_gather, Operation::reduce_scatter,
                                         Operation::gather, Operation::scatter,
                                         Operation::all_to_all};
    constexpr ReduceOp reductions[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::avg};
    call.operation = is_v ? with_blocks[same() % std::size(with_blocks)]
                          : operations[same() % std::size(operations)];
    call.reduction = reductions[same() % std::size(reductions)];
    call.root = RankInGroup{static_cast<std::int64_t>(same() % static_cast<unsigned>(members))};
    const bool is_user = same() % 3 == 0;
    const bool is_in_place = same() % 2 == 0;
    // All blocks fit, of which the largest has twice the elements.
    in.resize(static_cast<std::size_t>(2 * members * count));
    out.resize(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(self, i);
    if (is_v)
      set_blocks(same);
    else
      set_buffers(is_in_place);
    const bool reduces = call.operation == Operation::reduce ||
                         call.operation == Operation::all_reduce ||
                         (call.operation == Operation::reduce_scatter && !is_v);
    if (!is_user || !reduces) return;
    call.user = &composition;  // its counts are in bytes
    for (auto* buffer : {&call.in.count, &call.out.count}) *buffer *= 8;
    call.in.type = call.out.type = DataType::uint8;
  }

  static std::uint64_t value(std::int64_t member, std::size_t i) {
    return i * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(member) * 0x1f0000001f;
  }
  // The result of a reduction with the function, from left to right.
  [[nodiscard]] Values composed() const {
    Values result = out;
    if (call.operation == Operation::reduce && call.root.value() != self) return result;
    const std::int64_t place = call.operation == Operation::reduce_scatter ? self * count : 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto of = [&](std::int64_t member) {
        return std::bit_cast<Affine>(value(member, static_cast<std::size_t>(place + i)));
      };
      Affine all = of(0);
      for (std::int64_t k = 1; k < members; ++k) all = compose(all, of(k));
      result[static_cast<std::size_t>(i)] = std::bit_cast<std::uint64_t>(all);
    }
    return result;
  }

  void set_in(std::int64_t begin, std::int64_t n, bool in_out = false) {
    call.in = {reinterpret_cast<const std::byte*>((in_out ? out : in).data() + begin), n,
               DataType::uint64};
  }
  void set_out(std::int64_t n) {
    call.out = {reinterpret_cast<std::byte*>(out.data()), n, DataType::uint64};
  }
  void set_buffers(bool is_in_place) {
    const std::int64_t all = members * count;
    const bool is_root = call.root.value() == self;
    out = in;  // for operations in place
    switch (call.operation) {
      case Operation::broadcast:
        return set_out(count);
      case Operation::reduce:
        set_in(0, count, is_in_place && is_root);
        if (is_root) set_out(count);
        return;
      case Operation::all_reduce:
        set_in(0, count, is_in_place);
        return set_out(count);
      case Operation::all_gather:
      case Operation::gather:
        set_in(is_in_place ? self * count : 0, count,
               is_in_place && (is_root || call.operation == Operation::all_gather));
        if (is_root || call.operation == Operation::all_gather) set_out(all);
        return;
      case Operation::reduce_scatter:
        set_in(0, all);
        return set_out(count);
      case Operation::scatter:
        if (is_root) set_in(0, all);
        return set_out(count);
      case Operation::all_to_all:
        set_in(0, all, is_in_place);
        return set_out(all);
      default:
        return;
    }
  }
  void set_blocks(std::mt19937& same) {
    // What member a has for member b: the same numbers on all members.
    const auto n = static_cast<std::size_t>(members);
    std::vector<std::vector<std::int64_t>> sizes(n, std::vector<std::int64_t>(n));
    for (auto& row : sizes)
      for (std::int64_t& one : row)
        one = static_cast<std::int64_t>(same() % static_cast<unsigned>(2 * count + 1));
    const auto own = static_cast<std::size_t>(self);
    std::vector<std::int64_t> to, from;
    for (std::size_t k = 0; k < n; ++k) {
      to.push_back(sizes[own][k]);
      from.push_back(sizes[k][own]);
    }
    const bool is_root = call.root.value() == self;
    switch (call.operation) {
      case Operation::all_gather:
      case Operation::gather:
        out_blocks = Blocks{sizes[0]};
        call.out_blocks = &out_blocks;
        set_in(0, sizes[0][own]);
        if (is_root || call.operation == Operation::all_gather) set_out(std::ssize(out));
        return;
      case Operation::reduce_scatter:
      case Operation::scatter:
        in_blocks = Blocks{sizes[0]};
        call.in_blocks = &in_blocks;
        if (is_root || call.operation == Operation::reduce_scatter) set_in(0, std::ssize(in));
        return set_out(sizes[0][own]);
      default:
        in_blocks = Blocks{to};
        out_blocks = Blocks{from};
        call.in_blocks = &in_blocks;
        call.out_blocks = &out_blocks;
        set_in(0, std::ssize(in));
        return set_out(std::ssize(out));
    }
  }
};

// Waits for one operation after the other. The others of the transport go on meanwhile.
void finish(MpiTransport& transport, const std::vector<std::unique_ptr<Pending>>& pending) {
  const Deadline deadline{Deadline::Duration{60}};
  for (const auto& one : pending)
    while (!one->test()) {
      transport.advance();
      if (deadline.passed()) throw TimeoutError{"an operation does not end", "", {}};
      sched_yield();
    }
}

TEST_CASE("collectives as messages have the results of MPI's") {
  Transports transports;
  std::mt19937 same{7};
  // The largest shares have three pieces, or two where the members have more memory in all.
  const std::int64_t sizes[] = {0, 1, 3, 1000, 9001, size() <= 3 ? 140001 : 70001};
  for (int round = 0; round < 60; ++round) {
    // Several are in flight at once, and end in another order on each member.
    std::vector<std::unique_ptr<Case>> as_messages, as_collectives;
    std::vector<std::unique_ptr<Pending>> pending;
    for (int i = 0; i < 3; ++i) {
      const std::int64_t count = sizes[same() % (i == 0 ? std::size(sizes) : 4)];
      const bool is_v = same() % 3 == 0;
      std::mt19937 copy = same;
      as_messages.push_back(std::make_unique<Case>(same, transports, count, is_v));
      as_collectives.push_back(std::make_unique<Case>(copy, transports, count, is_v));
      pending.push_back(transports.by_messages->start(as_messages.back()->call));
    }
    std::rotate(pending.begin(), pending.begin() + rank() % 3, pending.end());
    finish(*transports.by_messages, pending);
    for (int i = 0; i < 3; ++i) {
      const auto k = static_cast<std::size_t>(i);
      Values expected;
      if (as_collectives[k]->call.user != nullptr) {
        expected = as_collectives[k]->composed();
      } else {
        std::vector<std::unique_ptr<Pending>> one;
        one.push_back(transports.by_mpi->start(as_collectives[k]->call));
        finish(*transports.by_mpi, one);
        expected = as_collectives[k]->out;
      }
      CAPTURE(round);
      CAPTURE(to_string(as_messages[k]->call.operation));
      CAPTURE(as_messages[k]->count);
      CAPTURE(as_messages[k]->call.has_blocks());
      CAPTURE(as_messages[k]->call.user != nullptr);
      REQUIRE(as_messages[k]->out == expected);
    }
  }
}

TEST_CASE("messages of a group have ranks and tags of its own") {
  Transports transports;
  // The same members as another group on the same communicator.
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  MpiTransport other{mpi::Members{mpi::CommunicatorView{MPI_COMM_WORLD}, ranks, rank(), 2}};
  const std::int64_t next = (transports.self + 1) % size();
  const std::int64_t previous = (transports.self + size() - 1) % size();
  const auto exchange = [&](MpiTransport& by, std::uint64_t& in, std::uint64_t& out,
                            std::int64_t to, std::int64_t from) {
    Call call{.operation = Operation::send_recv, .tag = 5};
    call.in = {reinterpret_cast<const std::byte*>(&in), 1, DataType::uint64};
    call.out = {reinterpret_cast<std::byte*>(&out), 1, DataType::uint64};
    call.destination = RankInGroup{to};
    call.source = RankInGroup{from};
    return by.start(call);
  };
  std::uint64_t mine = static_cast<std::uint64_t>(transports.self), got = 0;
  std::uint64_t of_other = 100 + static_cast<std::uint64_t>(rank()), got_of_other = 0;
  std::vector<std::unique_ptr<Pending>> pending;
  // In reverse order, the next member is the previous rank. Both messages go the same way.
  pending.push_back(exchange(*transports.by_messages, mine, got, next, previous));
  pending.push_back(exchange(other, of_other, got_of_other, (rank() + size() - 1) % size(),
                             (rank() + 1) % size()));
  if (rank() % 2 == 1) std::ranges::reverse(pending);
  finish(*transports.by_messages, pending);
  CHECK(got == static_cast<std::uint64_t>(previous));
  CHECK(got_of_other == 100 + static_cast<std::uint64_t>((rank() + 1) % size()));
}

TEST_CASE("an exception of a reduction function ends a collective as messages") {
  Transports transports;
  struct Failure {};
  const auto fail = [](const Affine& f, const Affine&) {
    if (rank() == rankmesh_test::last()) throw Failure{};
    return f;
  };
  detail::UserReductionOf<Affine, decltype(fail)> user{fail, Commutative::no};
  Values in(4), out(4);
  Call call{.operation = Operation::all_reduce};
  call.in = {reinterpret_cast<const std::byte*>(in.data()), 32, DataType::uint8};
  call.out = {reinterpret_cast<std::byte*>(out.data()), 32, DataType::uint8};
  call.user = &user;
  std::vector<std::unique_ptr<Pending>> pending;
  pending.push_back(transports.by_messages->start(call));
  bool has_thrown = false;
  try {
    finish(*transports.by_messages, pending);
  } catch (const UsageError&) {
    has_thrown = true;
  }
  // The first member of the group combines; it is the last rank of the world.
  CHECK(has_thrown == (rank() == rankmesh_test::last()));
}

}  // namespace
