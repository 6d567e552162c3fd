// SPDX-License-Identifier: BSD-3-Clause
// Averages of large numbers, by each transport on host memory.
#include <doctest/doctest.h>

#include "group/shared_cases.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"

using namespace shared_cases;

TEST_CASE("averages of unsigned numbers above half of their range, by each transport") {
  for (const std::string routes : {"*.*:host=shm", "*.*:host=mpi"}) {
    CAPTURE(routes);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed(routes.c_str())};
    auto& tp = mesh["tp"];
    const auto check = [&]<class T>(T high) {
      CAPTURE(sizeof(T));
      // The sum has the highest bit set and does not wrap around.
      const auto n = static_cast<T>(size());
      const T sum = static_cast<T>(high + n * (n - 1) / 2);
      const auto expected = static_cast<T>(sum / n);
      const T mine = static_cast<T>((rank() == 0 ? high : 0) + static_cast<T>(rank()));
      for (const std::size_t count : {std::size_t{3}, std::size_t{20000}}) {
        const std::vector<T> in(count, mine);
        std::vector<T> out(count);
        tp.all_reduce(in, out, ReduceOp::avg);
        CHECK(out == std::vector<T>(count, expected));
        out = in;
        tp.all_reduce_async(out, ReduceOp::avg).wait();
        CHECK(out == std::vector<T>(count, expected));
        tp.reduce(in, out, 0, ReduceOp::avg);
        if (rank() == 0) CHECK(out == std::vector<T>(count, expected));
      }
      const std::vector<T> blocks(3 * static_cast<std::size_t>(size()), mine);
      std::vector<T> block(3);
      tp.reduce_scatter(blocks, block, ReduceOp::avg);
      CHECK(block == std::vector<T>(3, expected));
    };
    check(std::uint64_t{3} << 62);
    check(std::uint32_t{3} << 30);
    mesh.close();
  }
}

TEST_CASE("a number that is no ReduceOp is refused, and not ignored") {
  NEEDS_RANKS(2);
  for (const char* route : {"*.*:host=shm", "*.*:host=mpi"}) {
    CAPTURE(route);
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed(route)};
    const std::vector<int> in(4, 1);
    std::vector<int> out(4);
    CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(in, out, static_cast<ReduceOp>(17)),
                         doctest::Contains("there is no ReduceOp with the number 17"), UsageError);
    mesh["tp"].all_reduce(in, out);  // nothing was sent
    CHECK(out == std::vector<int>(4, size()));
    mesh.close();
  }
}
