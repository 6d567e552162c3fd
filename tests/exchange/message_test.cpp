// SPDX-License-Identifier: BSD-3-Clause
// Messages of any length, and bytes that are not messages.
#include "rankmesh/exchange/message.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::Bytes;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

Bytes bytes(std::int64_t seed, std::size_t n) {
  Bytes result(n);
  for (std::size_t i = 0; i < n; ++i)
    result[i] = static_cast<std::byte>(static_cast<std::size_t>(seed) * 31 + i * 7);
  return result;
}

// Around the length that fits the first part.
constexpr std::size_t lengths[] = {0, 1, exchange::short_message, exchange::short_message + 1,
                                   70001};

}  // namespace

TEST_CASE("messages of any length are broadcast, sent and gathered") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  for (const std::size_t n : lengths) {
    CAPTURE(n);
    for (std::int64_t root = 0; root < tp.size(); ++root) {
      Bytes message = rank() == root ? bytes(root, n) : bytes(-1, 5);
      exchange::broadcast_message(tp, message, root);
      CHECK(message == bytes(root, n));
      const auto mine = bytes(rank(), n + static_cast<std::size_t>(rank()));
      const auto all = exchange::gather_messages(tp, mine, root);
      REQUIRE(all.size() == (rank() == root ? static_cast<std::size_t>(size()) : 0));
      for (std::size_t r = 0; r < all.size(); ++r)
        CHECK(all[r] == bytes(static_cast<std::int64_t>(r), n + r));
    }
    CHECK(exchange::all_gather_messages(tp, bytes(rank(), n)).back() == bytes(size() - 1, n));
    if (size() < 2) continue;
    if (rank() % 2 == 0 && rank() + 1 < size())
      exchange::send_message(tp, bytes(rank(), n), next, 3);
    if (rank() % 2 == 1) CHECK(exchange::recv_message(tp, prev, 3) == bytes(rank() - 1, n));
  }
  mesh.close();
}

TEST_CASE("bytes that are not a message are rejected before memory is allocated") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.check = false;  // which compares the lengths of both ends first
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  // Garbage of a first part's length; then one that claims to be longer than it may.
  if (tp.is_first()) {
    tp.send(bytes(3, exchange::first_part), 1, 1);
    tp.send(bytes(3, 12), 1, 2);
    exchange::send_message(tp, bytes(0, 999), 1, 3);
    exchange::send_message(tp, bytes(0, 999), 1, 4);
  }
  if (rank() == 1) {
    CHECK_THROWS_WITH_AS((void)exchange::recv_message(tp, 0, 1),
                         doctest::Contains("do not begin with the mark"), DataError);
    CHECK_THROWS_WITH_AS((void)exchange::recv_message(tp, 0, 2), doctest::Contains("received 12 "),
                         UsageError);
    CHECK_THROWS_WITH_AS((void)exchange::recv_message(tp, 0, 3, 998),
                         doctest::Contains("the limit is 998"), DataError);
    CHECK(exchange::recv_message(tp, 0, 4, 999) == bytes(0, 999));  // as long as the limit allows
  }
  mesh.close();
}

TEST_CASE("receivers get the error of a sender that fails") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const exchange::Failure failure{"no paper"};
  const std::int64_t last = tp.size() - 1;
  const auto* mine = tp.is_last() ? &failure : nullptr;
  Bytes message;
  CHECK_THROWS_WITH_AS(exchange::broadcast_message(tp, message, last, mine),
                       doctest::Contains("no paper"), DataError);
  CHECK_THROWS_WITH_AS((void)exchange::gather_messages(tp, message, 0, mine),
                       doctest::Contains("no paper"), DataError);
  CHECK_THROWS_WITH_AS((void)exchange::all_gather_messages(tp, message, mine),
                       doctest::Contains("no paper"), DataError);
  tp.barrier();
  mesh.close();
}
