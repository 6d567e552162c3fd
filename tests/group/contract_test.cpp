// SPDX-License-Identifier: BSD-3-Clause
// Errors instead of undefined behaviour. Every check happens before anything is sent, so ranks may
// fail alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

TEST_CASE("wrong sizes, roots, tags and overlaps throw UsageError, and the group stays usable") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  std::vector<int> two(2);
  std::vector<int> three(3);
  std::vector<int> wide(static_cast<std::size_t>(2 * n + 2));
  CHECK_THROWS_WITH_AS(tp.all_reduce(two, three),
                       doctest::Contains("out has 3 elements, but 2 are needed"), UsageError);
  CHECK_THROWS_AS(tp.all_gather(two, std::vector<int>(static_cast<std::size_t>(2 * n + 1))),
                  UsageError);
  CHECK_THROWS_AS(tp.reduce_scatter(std::vector<int>(static_cast<std::size_t>(2 * n + 1)), two),
                  UsageError);
  if (tp.is_first()) {
    CHECK_THROWS_AS(tp.gather(two, three, 0), UsageError);
    CHECK_THROWS_AS(tp.scatter(three, two, 0), UsageError);
  }
  CHECK_THROWS_WITH_AS(tp.broadcast(two, n), doctest::Contains("the root"), UsageError);
  CHECK_THROWS_AS(tp.broadcast(two, -1), UsageError);
  CHECK_THROWS_AS(tp.send(two, n), UsageError);
  CHECK_THROWS_WITH_AS(tp.recv(two, tp.rank_in_group()), doctest::Contains("would wait for ever"),
                       UsageError);
  if (n > 1) {
    CHECK_THROWS_AS(tp.send(two, next, -1), UsageError);
    CHECK_THROWS_AS(tp.send(two, next, 16384), UsageError);
    CHECK_THROWS_AS(tp.all_to_all(std::vector<int>(static_cast<std::size_t>(n + 1)),
                                  std::vector<int>(static_cast<std::size_t>(n + 1))),
                    UsageError);
  }
  const std::span<int> more{wide};
  const std::span<int> all = more.first(static_cast<std::size_t>(2 * n));
  CHECK_THROWS_WITH_AS(tp.all_reduce(more.first(2), more.subspan(1, 2)),
                       doctest::Contains("overlap"), UsageError);
  if (n > 1) {
    CHECK_THROWS_AS(tp.all_gather(all.subspan(1, 2), all), UsageError);  // not this rank's block
    CHECK_THROWS_AS(tp.reduce_scatter(all, all.subspan(0, 2)), UsageError);
  }
  std::vector<int> ones{1};
  tp.all_reduce(ones);
  CHECK(ones[0] == n);
  mesh.close();
}

TEST_CASE("the highest tag and memory that ends where other begins are no mistakes") {
  for (const bool polled : {false, true}) {
    CAPTURE(polled);
    MeshOptions options;
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    std::vector<int> memory(4, 1);
    const std::span<int> all{memory};
    const std::vector<int> sums(2, static_cast<int>(tp.size()));
    tp.all_reduce(all.first(2), all.subspan(2));
    CHECK(std::vector<int>(memory.begin() + 2, memory.end()) == sums);
    std::ranges::fill(memory, 1);
    // The asynchronous form makes every check.
    tp.all_reduce_async(all.first(2), all.subspan(2)).wait();
    CHECK(std::vector<int>(memory.begin() + 2, memory.end()) == sums);
    std::ranges::fill(memory, 1);
    tp.all_reduce_async(all.subspan(2), all.first(2)).wait();
    CHECK(std::vector<int>(memory.begin(), memory.begin() + 2) == sums);
    if (tp.size() > 1) {
      const std::vector<int> mine{static_cast<int>(tp.rank_in_group().value())};
      std::vector<int> received(1);
      tp.send_recv(mine, received, next, prev, 16383);
      tp.send_recv_async(mine, received, next, prev, 16383).wait();
      CHECK(received[0] == static_cast<int>((mine[0] + tp.size() - 1) % tp.size()));
    }
    mesh.close();
  }
}

TEST_CASE("an exchange with itself in one direction only is refused, whichever it is") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.deadline = Deadline::Duration{0.5};  // ends what is not refused
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  const RankInGroup self = tp.rank_in_group();
  const std::vector<int> in{1};
  std::vector<int> out(1);
  CHECK_THROWS_AS(tp.send_recv(in, out, self, next), UsageError);
  CHECK_THROWS_AS(tp.send_recv(in, out, next, self), UsageError);
  tp.send_recv(in, out, self, self);
  CHECK(out == in);
  mesh.close();
}

TEST_CASE("device memory without a device transport says so") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  float value = 0;
  CHECK_THROWS_WITH_AS(mesh["tp"].all_reduce(DeviceSpan{&value, 1}, StreamRef{}),
                       doctest::Contains("no device transport"), NoDeviceError);
  mesh.close();
}

TEST_CASE("a coordinator knows its members, its ranks and its neighbours") {
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
  CHECK(dp.first_rank() == Rank{r % tp_size});
  CHECK(dp.next_rank() == Rank{(r + tp_size) % size});
  CHECK(dp.prev_rank() == Rank{(r + size - tp_size) % size});
  if (const char* launcher = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK"))
    CHECK(dp.local_rank() == std::atoi(launcher));
  int comm_size = 0;
  MPI_Comm_size(tp.native_mpi(), &comm_size);
  CHECK(comm_size == tp_size);
  CHECK(tp.ranks().contains(r));
  mesh.close();
}

TEST_CASE("a call from a second thread throws UsageError") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  // A member that calls the function is in the operation.
  std::vector<int> value{1};
  int function_calls = 0;
  tp.all_reduce(value, [&](int a, int b) {
    ++function_calls;
    std::thread{[&] {
      CHECK_THROWS_WITH_AS(tp.barrier(), doctest::Contains("two threads"), UsageError);
    }}.join();
    return a + b;
  });
  CHECK(value[0] == tp.size());
  CHECK(tp.all_reduce(function_calls) > 0);  // the members decide which of them calls it
  mesh.close();
}

TEST_CASE("calls are checked like the functions") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::vector<double> doubles(4, 1);
  std::vector<float> floats(4);
  CHECK_THROWS_WITH_AS(detail::GroupAccess::run(tp, {.operation = Operation::all_reduce,
                                                     .in = buffer_of(doubles).as_input(),
                                                     .out = buffer_of(floats)}),
                       doctest::Contains("in holds float64, but out holds float32"), UsageError);
  Buffer on_device = buffer_of(floats);
  on_device.kind = MemoryKind::device;
  CHECK_THROWS_AS(detail::GroupAccess::run(tp, {.operation = Operation::all_reduce,
                                                .in = buffer_of(floats).as_input(),
                                                .out = on_device}),
                  Error);
  const Blocks one{std::vector<std::int64_t>{1}};
  if (tp.size() > 1)
    CHECK_THROWS_AS(detail::GroupAccess::run(tp, {.operation = Operation::all_gather,
                                                  .in = buffer_of(floats).as_input(),
                                                  .out = buffer_of(floats),
                                                  .out_blocks = &one}),
                    UsageError);
  mesh.close();
}

TEST_CASE("calls of v-forms with Blocks of the wrong buffer throw UsageError") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::size_t>(tp.size());
  std::vector<int> in(n), out(n);
  const Blocks ones{std::vector<std::int64_t>(n, 1)};
  Call call{
      .operation = Operation::all_to_all, .in = buffer_of(in).as_input(), .out = buffer_of(out)};
  call.in_blocks = &ones;
  CHECK_THROWS_WITH_AS(detail::GroupAccess::run(tp, call), doctest::Contains("out has no Blocks"),
                       UsageError);
  call.in_blocks = nullptr;
  call.out_blocks = &ones;
  CHECK_THROWS_WITH_AS(detail::GroupAccess::run(tp, call), doctest::Contains("in has no Blocks"),
                       UsageError);
  call.in_blocks = &ones;
  CHECK_NOTHROW(detail::GroupAccess::run(tp, call));
  // A buffer that is one block must not have Blocks.
  call.operation = Operation::all_gather;
  CHECK_THROWS_WITH_AS(detail::GroupAccess::run(tp, call), doctest::Contains("in is one block"),
                       UsageError);
  call.operation = Operation::reduce_scatter;
  CHECK_THROWS_WITH_AS(detail::GroupAccess::run(tp, call), doctest::Contains("out is one block"),
                       UsageError);
  mesh.close();
}

TEST_CASE("blocks of different sizes, as calls") {
  for (const bool polled : {false, true}) {
    MeshOptions options;
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const std::int64_t n = tp.size();
    const std::int64_t k = tp.rank_in_group().value();
    std::vector<std::int64_t>
        counts;  // member r has r elements, in blocks with one element of gap behind each
    std::vector<std::int64_t> places;
    std::int64_t end = 0;
    for (std::int64_t r = 0; r < n; ++r) {
      counts.push_back(r);
      places.push_back(end);
      end += r + 1;
    }
    const Blocks blocks{counts, places};
    std::vector<int> expected(static_cast<std::size_t>(end), -1);
    for (std::int64_t r = 0; r < n; ++r)
      for (std::int64_t i = 0; i < r; ++i)
        expected[static_cast<std::size_t>(places[static_cast<std::size_t>(r)] + i)] =
            static_cast<int>(r);
    const std::vector<int> mine(static_cast<std::size_t>(k), static_cast<int>(k));
    std::vector<int> all(static_cast<std::size_t>(end), -1);
    detail::GroupAccess::run(tp, {.operation = Operation::all_gather,
                                  .in = buffer_of(mine),
                                  .out = buffer_of(all),
                                  .out_blocks = &blocks});
    CHECK(all == expected);
    std::ranges::fill(all, -1);
    detail::GroupAccess::run(tp, {.operation = Operation::gather,
                                  .in = buffer_of(mine),
                                  .out = buffer_of(all),
                                  .out_blocks = &blocks,
                                  .root = 0});
    if (k == 0) CHECK(all == expected);
    std::vector<int> part(static_cast<std::size_t>(k), -1);
    detail::GroupAccess::run(tp, {.operation = Operation::scatter,
                                  .in = buffer_of(expected).as_input(),
                                  .out = buffer_of(part),
                                  .in_blocks = &blocks,
                                  .root = n - 1});
    CHECK(part == mine);
    // Every member sends r elements to member r, and receives as many elements
    // as its rank from each.
    const Blocks same{std::vector<std::int64_t>(static_cast<std::size_t>(n), k)};
    std::vector<int> received(static_cast<std::size_t>(n * k), -1);
    detail::GroupAccess::run(tp, {.operation = Operation::all_to_all,
                                  .in = buffer_of(expected).as_input(),
                                  .out = buffer_of(received),
                                  .in_blocks = &blocks,
                                  .out_blocks = &same});
    CHECK(received == std::vector<int>(static_cast<std::size_t>(n * k), static_cast<int>(k)));
    mesh.close();
  }
}

TEST_CASE("in place: gather, scatter and all_to_all") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::size_t>(tp.size());
  const auto k = static_cast<std::size_t>(tp.rank_in_group().value());
  std::vector<int> blocks(n, -1);
  blocks[k] = static_cast<int>(k);
  tp.gather(std::span{blocks}.subspan(k, 1), blocks, 0);
  std::vector<int> expected(n);
  for (std::size_t r = 0; r < n; ++r) expected[r] = static_cast<int>(r);
  if (k == 0) CHECK(blocks == expected);
  std::vector<int> own{-1};
  if (k == 0)
    tp.scatter(blocks, std::span{blocks}.first(1), 0);
  else
    tp.scatter(std::vector<int>{}, own, 0);
  CHECK((k == 0 ? blocks[0] : own[0]) == static_cast<int>(k));
  std::vector<int> exchange;
  for (std::size_t r = 0; r < n; ++r) exchange.push_back(static_cast<int>(100 * k + r));
  tp.all_to_all(exchange, exchange);
  for (std::size_t r = 0; r < n; ++r) CHECK(exchange[r] == static_cast<int>(100 * r + k));
  mesh.close();
}

TEST_CASE("a message of another length is an error, blocking and asynchronous") {
  NEEDS_RANKS(2);
  for (const bool polled : {false, true}) {
    MeshOptions options;
    options.check = false;  // which names it before the data moves
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const bool has_types = tp.explain(Operation::send, 4).transport == "shm";
    std::vector<int> two(2);
    if (tp.is_first()) tp.send(std::vector<int>{7}, 1);
    if (tp.rank_in_group() == RankInGroup{1})
      CHECK_THROWS_WITH_AS(
          tp.recv(two, 0),
          doctest::Contains(has_types ? "tp.recv from rank 0 (tag 0): received 1 x int32, but 2 x "
                                        "int32 were expected"
                                      : "tp.recv from rank 0 (tag 0): received 4 bytes, but 8 "
                                        "were expected"),
          UsageError);
    tp.barrier();
    mesh.close();
  }
}

TEST_CASE("an exchange of other lengths is an error where they are wrong, and the next one works") {
  NEEDS_RANKS(2);
  for (const bool polled : {false, true})
    for (const std::size_t n : {2, 5000}) {  // small messages use other functions of MPI
      CAPTURE(n);
      MeshOptions options;
      options.check = false;  // which breaks the group
      if (polled) options.deadline = Deadline::Duration{60};
      Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
      auto& tp = mesh["tp"];
      const RankInGroup other{1 - tp.rank_in_group().value()};
      if (other.value() >= 0) {
        std::vector<int> in(n, 1), out(n), fewer(n - 1), more(n + 1);
        // The second member receives too little; the first one the right number.
        if (tp.is_first())
          tp.send_recv(fewer, out, other, other);
        else
          CHECK_THROWS_AS(tp.send_recv(in, out, other, other), UsageError);
        tp.send_recv(in, out, other, other);
        CHECK(out == in);
        // MPI itself finds a message that is too long.
        if (tp.is_first())
          tp.send_recv(more, out, other, other);
        else
          CHECK_THROWS_WITH_AS(tp.send_recv(in, out, other, other),
                               doctest::Contains("tp.send_recv to rank 0 from rank 0: received"),
                               UsageError);
        tp.send_recv(in, out, other, other);
        CHECK(out == in);
        Work sent;
        if (tp.is_first())
          sent = tp.send_async(more, other, 5);
        else
          CHECK_THROWS_WITH_AS(tp.recv_async(in, other, 5).wait(),
                               doctest::Contains("tp.recv from rank 0 (tag 5): received"),
                               UsageError);
        sent.wait();
      }
      tp.barrier();
      mesh.close();
    }
}
