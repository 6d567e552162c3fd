// SPDX-License-Identifier: BSD-3-Clause
// Collectives over MPI, on a communicator whose ranks have another order than the world's.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "group/conformance.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"
#include "transport/detail/mpi_transport.hpp"

namespace {

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using Words = std::vector<std::uint64_t>;

// Associative, but not commutative: x -> ax + b, one after the other.
struct AffineWord {
  std::uint32_t a, b;
};
using Composition =
    detail::UserReductionOf<AffineWord, AffineWord (*)(const AffineWord&, const AffineWord&)>;
AffineWord compose(const AffineWord& f, const AffineWord& g) {
  return {f.a * g.a, f.b * g.a + g.b};
}

// MPI on a communicator of the world in reverse order.
struct Reversed {
  Reversed() {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.rbegin(), ranks.rend(), 0);
    comm = mpi::create_group(mpi::CommunicatorView{MPI_COMM_WORLD}, ranks, 1);
    self = comm.view().rank();
    transport = std::make_unique<MpiTransport>(comm.view(), largest);
  }
  ~Reversed() { comm.free(); }

  static constexpr std::int64_t largest = 100003;  // several counts for the largest messages
  mpi::Communicator comm;
  int self = 0;
  std::unique_ptr<MpiTransport> transport;
};

void finish(Pending& pending) {
  if (!pending.wait(Deadline{Deadline::Duration{60}}))
    throw TimeoutError{"an operation does not end", "", {}};
}

TEST_CASE("the table of conformance by MPI's non-blocking functions, in another order of ranks") {
  Reversed reversed;
  rankmesh_test::Carrier carrier{size(), reversed.self, {}, {}};
  carrier.start = [&](Call call) -> std::function<void()> {
    // As the coordinator passes it.
    const bool is_at_root =
        call.operation == Operation::reduce || call.operation == Operation::gather;
    if (is_at_root && call.root.value() != reversed.self) call.out = {nullptr, 0, call.out.type};
    std::shared_ptr<Pending> pending = reversed.transport->start(call);
    return [pending] { finish(*pending); };
  };
  carrier.run = [&](const Call& call) { carrier.start(call)(); };
  rankmesh_test::Conformance table;
  table.counts = {0, 1, 3, 1000, 9001, size() <= 3 ? 140001 : 70001};
  table.types = {DataType::uint64, DataType::float64, DataType::int16, DataType::float32,
                 DataType::uint8};
  table.share = size() <= 3 ? 4 : 24;
  check_conformance(carrier, table);
}

TEST_CASE("a function that is not commutative reduces from the first member to the last") {
  Reversed reversed;
  constexpr std::size_t period = 1009;  // of the values
  const auto value = [](std::int64_t member, std::size_t i) {
    return (i % period) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(member) * 0x1f0000001f;
  };
  Words composed;
  for (std::size_t i = 0; i < period; ++i) {
    const auto of = [&](std::int64_t member) {
      return std::bit_cast<AffineWord>(value(member, i));
    };
    AffineWord all = of(0);
    for (std::int64_t k = 1; k < size(); ++k) all = compose(all, of(k));
    composed.push_back(std::bit_cast<std::uint64_t>(all));
  }
  Composition composition{compose, Commutative::no};
  std::int64_t root = 0;
  for (const std::int64_t count : {0, 1, 3, 1000, 9001, 70001}) {
    CAPTURE(count);
    // All three are in flight at once, and end in another order on each member.
    std::vector<Words> in, out, expected;
    std::vector<std::unique_ptr<Pending>> pending;
    root = (root + 1) % size();
    for (const Operation operation :
         {Operation::reduce, Operation::all_reduce, Operation::reduce_scatter}) {
      const bool scatters = operation == Operation::reduce_scatter;
      const bool gets = operation != Operation::reduce || root == reversed.self;
      Words& input = in.emplace_back(static_cast<std::size_t>(scatters ? count * size() : count));
      for (std::size_t i = 0; i < input.size(); ++i) input[i] = value(reversed.self, i);
      Words& output = out.emplace_back(static_cast<std::size_t>(gets ? count : 0));
      Words& right = expected.emplace_back(output.size());
      const auto begin = static_cast<std::size_t>(scatters ? reversed.self * count : 0);
      for (std::size_t i = 0; i < right.size(); ++i) right[i] = composed[(begin + i) % period];
      Call call{.operation = operation};  // its counts are in bytes
      call.in = {reinterpret_cast<const std::byte*>(input.data()), 8 * std::ssize(input),
                 DataType::uint8};
      call.out = {reinterpret_cast<std::byte*>(output.data()), 8 * std::ssize(output),
                  DataType::uint8};
      call.root = RankInGroup{root};
      call.user = &composition;
      pending.push_back(reversed.transport->start(call));
    }
    std::rotate(pending.begin(), pending.begin() + rank() % 3, pending.end());
    for (const auto& one : pending) finish(*one);
    CHECK(out == expected);
  }
}

}  // namespace
