// Errors instead of undefined behaviour. Every check happens before anything is sent, so ranks may fail
// alone.
#include <doctest/doctest.h>

#include <cstdlib>
#include <thread>

#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

TEST_CASE("wrong sizes, roots, tags and overlaps are refused, and the group still works") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  std::vector<int> two(2);
  std::vector<int> three(3);
  std::vector<int> wide(static_cast<std::size_t>(2 * n + 2));
  CHECK_THROWS_WITH_AS(tp.all_reduce(two, three), doctest::Contains("out has 3 elements, 2 are wanted"),
                       UsageError);
  CHECK_THROWS_AS(tp.all_gather(two, std::vector<int>(static_cast<std::size_t>(2 * n + 1))), UsageError);
  CHECK_THROWS_AS(tp.reduce_scatter(std::vector<int>(static_cast<std::size_t>(2 * n + 1)), two), UsageError);
  if (tp.is_first()) {
    CHECK_THROWS_AS(tp.gather(two, three, 0), UsageError);
    CHECK_THROWS_AS(tp.scatter(three, two, 0), UsageError);
  }
  CHECK_THROWS_WITH_AS(tp.broadcast(two, n), doctest::Contains("the root is"), UsageError);
  CHECK_THROWS_AS(tp.broadcast(two, -1), UsageError);
  CHECK_THROWS_AS(tp.send(two, n), UsageError);
  CHECK_THROWS_WITH_AS(tp.send(two, tp.rank_in_group()), doctest::Contains("the caller itself"), UsageError);
  if (n > 1) {
    CHECK_THROWS_AS(tp.send(two, next, -1), UsageError);
    CHECK_THROWS_AS(tp.send(two, next, 16384), UsageError);
    CHECK_THROWS_AS(tp.all_to_all(std::vector<int>(static_cast<std::size_t>(n + 1)),
                                  std::vector<int>(static_cast<std::size_t>(n + 1))),
                    UsageError);
  }
  const std::span<int> more{wide};
  const std::span<int> all = more.first(static_cast<std::size_t>(2 * n));
  CHECK_THROWS_WITH_AS(tp.all_reduce(more.first(2), more.subspan(1, 2)), doctest::Contains("overlap"),
                       UsageError);
  if (n > 1) {
    CHECK_THROWS_AS(tp.all_gather(all.subspan(1, 2), all), UsageError);  // not the own block
    CHECK_THROWS_AS(tp.reduce_scatter(all, all.subspan(0, 2)), UsageError);
  }
  std::vector<int> ones{1};
  tp.all_reduce(ones);
  CHECK(ones[0] == n);
  mesh.close();
}

TEST_CASE("device memory without a device transport says so") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  float value = 0;
  CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(DeviceSpan{&value, 1}, StreamRef{}),
                       doctest::Contains("no device transport"), NoDeviceError);
  mesh.close();
}

TEST_CASE("who and where") {
  const int size = rankmesh_test::size();
  Mesh mesh{MPI_COMM_WORLD, size % 2 == 0 ? "dp=auto,tp=2" : "dp=auto,tp=1"};
  const std::int64_t tp_size = size % 2 == 0 ? 2 : 1;
  auto& tp = mesh["tp"];
  auto& dp = mesh["dp"];
  const std::int64_t r = rankmesh_test::rank();
  CHECK(tp.name() == "tp");
  CHECK(tp.size() == tp_size);
  CHECK(tp.rank() == Rank{r});
  CHECK(tp.rank_in_group() == RankInGroup{r % tp_size});
  CHECK(mesh.coordinate("dp") == Coordinate{r / tp_size});
  CHECK(dp.is_first() == (r < tp_size));
  CHECK(dp.is_last() == (r >= size - tp_size));
  CHECK(dp.first() == Rank{r % tp_size});
  CHECK(dp.next() == Rank{(r + tp_size) % size});
  CHECK(dp.prev() == Rank{(r + size - tp_size) % size});
  if (const char* launcher = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK")) CHECK(dp.local_rank() == std::atoi(launcher));
  int comm_size = 0;
  MPI_Comm_size(tp.native_mpi(), &comm_size);
  CHECK(comm_size == tp_size);
  CHECK(tp.ranks().contains(r));
  mesh.close();
}

TEST_CASE("a second thread is refused while the first is inside") {
  if (rankmesh_test::size() < 2) return;
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  if (tp.is_first()) {
    std::vector<int> value(1);
    std::thread other{[&] {
      // Rank 0's main thread sits in recv until rank 1 sends, which it does last.
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      CHECK_THROWS_WITH_AS(tp.barrier(), doctest::Contains("two threads"), UsageError);
    }};
    tp.recv(value, 1);
    other.join();
  } else if (tp.rank_in_group() == RankInGroup{1}) {
    std::this_thread::sleep_for(std::chrono::milliseconds{600});
    tp.send(std::vector<int>{1}, 0);
  }
  mesh.close();
}
