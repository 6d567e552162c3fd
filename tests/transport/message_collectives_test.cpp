// SPDX-License-Identifier: BSD-3-Clause
// Collectives as messages between two members.
#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "group/conformance.hpp"
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
    by_messages = std::make_unique<MpiTransport>(mpi::Members{world, ranks, self, 1}, largest);
  }
  ~Transports() { own.free(); }

  static constexpr std::int64_t largest = 100003;  // several counts for the largest messages
  mpi::Communicator own;
  int self = 0;
  std::unique_ptr<MpiTransport> by_messages;
};

// Waits for one operation. The others of the transport go on meanwhile.
void finish(MpiTransport& transport, Pending& pending) {
  const Deadline deadline{Deadline::Duration{60}};
  while (!pending.test()) {
    if (deadline.passed()) throw TimeoutError{"an operation does not end", "", {}};
    sched_yield();
  }
}

TEST_CASE("the table of conformance by collectives as messages") {
  Transports transports;
  rankmesh_test::Carrier carrier{size(), transports.self, {}, {}};
  carrier.start = [&](Call call) -> std::function<void()> {
    // As the coordinator passes it.
    const bool is_at_root =
        call.operation == Operation::reduce || call.operation == Operation::gather;
    if (is_at_root && call.root.value() != transports.self) call.out = {nullptr, 0, call.out.type};
    std::shared_ptr<Pending> pending = transports.by_messages->start(call);
    return [&, pending] { finish(*transports.by_messages, *pending); };
  };
  carrier.run = [&](const Call& call) { carrier.start(call)(); };
  rankmesh_test::Conformance table;
  // The largest shares have three pieces, or two where the members have more memory in all.
  table.counts = {0, 1, 3, 1000, 9001, size() <= 3 ? 140001 : 70001};
  table.types = {DataType::uint64, DataType::float64, DataType::int16, DataType::float32,
                 DataType::uint8};
  table.order = rankmesh_test::in_group_order(size());
  table.share = size() <= 3 ? 4 : 24;
  check_conformance(carrier, table);
}

TEST_CASE("a function that is not commutative reduces from the first member to the last") {
  Transports transports;
  constexpr std::size_t period = 1009;  // of the values
  const auto value = [](std::int64_t member, std::size_t i) {
    return (i % period) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(member) * 0x1f0000001f;
  };
  Values composed;
  for (std::size_t i = 0; i < period; ++i) {
    const auto of = [&](std::int64_t member) { return std::bit_cast<Affine>(value(member, i)); };
    Affine all = of(0);
    for (std::int64_t k = 1; k < size(); ++k) all = compose(all, of(k));
    composed.push_back(std::bit_cast<std::uint64_t>(all));
  }
  Composition composition{compose, Commutative::no};
  std::int64_t root = 0;
  for (const std::int64_t count : {0, 1, 3, 1000, 9001, 70001}) {
    CAPTURE(count);
    // All three are in flight at once, and end in another order on each member.
    std::vector<Values> in, out, expected;
    std::vector<std::unique_ptr<Pending>> pending;
    root = (root + 1) % size();
    for (const Operation operation :
         {Operation::reduce, Operation::all_reduce, Operation::reduce_scatter}) {
      const bool scatters = operation == Operation::reduce_scatter;
      const bool gets = operation != Operation::reduce || root == transports.self;
      Values& input = in.emplace_back(static_cast<std::size_t>(scatters ? count * size() : count));
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = value(transports.self, i);
      Values& output = out.emplace_back(static_cast<std::size_t>(gets ? count : 0));
      Values& right = expected.emplace_back(output.size());
      const auto begin = static_cast<std::size_t>(scatters ? transports.self * count : 0);
      for (std::size_t i = 0; i < right.size(); ++i) right[i] = composed[(begin + i) % period];
      Call call{.operation = operation};  // its counts are in bytes
      call.in = {reinterpret_cast<const std::byte*>(input.data()), 8 * std::ssize(input),
                 DataType::uint8};
      call.out = {reinterpret_cast<std::byte*>(output.data()), 8 * std::ssize(output),
                  DataType::uint8};
      call.root = RankInGroup{root};
      call.user = &composition;
      pending.push_back(transports.by_messages->start(call));
    }
    std::rotate(pending.begin(), pending.begin() + rank() % 3, pending.end());
    for (const auto& one : pending) finish(*transports.by_messages, *one);
    CHECK(out == expected);
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
  for (const auto& one : pending) finish(*transports.by_messages, *one);
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
  const auto pending = transports.by_messages->start(call);
  bool has_thrown = false;
  try {
    finish(*transports.by_messages, *pending);
  } catch (const UsageError&) {
    has_thrown = true;
  }
  // The first member of the group combines; it is the last rank of the world.
  CHECK(has_thrown == (rank() == rankmesh_test::last()));
}

}  // namespace
