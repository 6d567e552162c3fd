// SPDX-License-Identifier: BSD-3-Clause
// One writer, several readers: each message arrives once and in order; late ranks are named.
#include "rankmesh/exchange/control_queue.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "rankmesh/exchange/objects.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::Bytes;
using exchange::ControlQueue;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

Bytes message(std::uint64_t number, std::size_t n) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(number * 13 + i);
  return bytes;
}

std::size_t length_of(int number) {  // some messages have more chunks than the queue has slots
  return static_cast<std::size_t>(number % 50 == 49 ? 5000
                                  : number % 5 == 4 ? number
                                                    : number % 40);
}

// Counts the segments of this process. Other jobs may have segments at the same time.
std::ptrdiff_t files_in_shm() {
  const std::string prefix = "rankmesh-" + std::to_string(getpid()) + "-";
  std::ptrdiff_t n = 0;
  for (const auto& file : std::filesystem::directory_iterator{"/dev/shm"})
    n += file.path().filename().string().starts_with(prefix) ? 1 : 0;
  return n;
}

}  // namespace

TEST_CASE("messages of all lengths come once and in order, to every reader, from any writer") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=2,tp=auto" : "tp=auto"};
  auto& tp = mesh["tp"];
  for (const std::int64_t slots : {1, 7}) {
    const std::int64_t writer = slots == 1 ? 0 : tp.size() - 1;
    ControlQueue queue{tp, writer, {.slots = slots, .slot_bytes = 200}};
    CHECK(queue.is_writer() == (tp.rank_in_group() == RankInGroup{writer}));
    CHECK(queue.local_readers() + queue.remote_readers() == tp.size() - 1);
    std::mt19937 random{static_cast<unsigned>(rank())};
    Bytes got;
    for (int i = 0; i < 400; ++i) {
      if (random() % 60 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      const auto expected = message(static_cast<std::uint64_t>(i), length_of(i));
      if (queue.is_writer()) {
        queue.write(expected);
      } else if (i % 3 == 0) {
        while (!queue.try_read(got)) std::this_thread::yield();
        CHECK(got == expected);
      } else {
        queue.read(got);
        CHECK(got == expected);
      }
    }
    tp.barrier();
    if (!queue.is_writer()) CHECK(!queue.try_read(got));
  }
  CHECK(files_in_shm() == 0);
  mesh.close();
}

TEST_CASE("objects in a queue: each message is one object, and another type is refused") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  ControlQueue queue{mesh["tp"], 0};
  if (queue.is_writer()) {
    exchange::write_object(queue, std::string{"step 7"});
    exchange::write_object(queue, 7);
  } else {
    CHECK(exchange::read_object<std::string>(queue) == "step 7");
    CHECK_THROWS_AS((void)exchange::read_object<std::string>(queue), DataError);
  }
  mesh["tp"].barrier();
  mesh.close();
}

TEST_CASE("several queues on one group at once, and one that moves") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  ControlQueue down{tp, 0};
  ControlQueue up{tp, tp.size() - 1};
  ControlQueue moved{std::move(down)};
  if (moved.is_writer()) moved.write(message(1, 10));
  if (up.is_writer()) up.write(message(2, 20));
  if (!moved.is_writer()) CHECK(moved.read() == message(1, 10));
  if (!up.is_writer()) CHECK(up.read() == message(2, 20));
  tp.barrier();
  mesh.close();
  CHECK_THROWS_AS(moved.is_writer() ? moved.write({}) : (void)moved.read(), ClosedError);
}

TEST_CASE(
    "a late reader and a silent writer are named, and the queue can be used again afterwards") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto soon = Deadline::Duration{0.2};
  ControlQueue queue{tp, 0, {.slots = 4}};
  if (queue.is_writer()) {
    for (int i = 0; i < 4; ++i) queue.write(message(static_cast<std::uint64_t>(i), 8), soon);
    try {
      // The readers other than rank 1 must have read by then, also on a busy machine.
      queue.write(message(4, 8), size() > 2 ? Deadline::Duration{1} : soon);
      FAIL("a fifth message was written into four slots, though rank 1 has read nothing");
    } catch (const TimeoutError& error) {
      CHECK(error.missing() == std::vector<Rank>{1});
      CHECK_CONTAINS(error.message(), "rank 1 (tp=1) is 4 chunks behind");
    }
  }
  // The others read; rank 1 only after the writer's deadline has passed.
  if (rank() > 1)
    for (int i = 0; i < 4; ++i) CHECK(queue.read() == message(static_cast<std::uint64_t>(i), 8));
  tp.barrier();
  if (rank() == 1)
    for (int i = 0; i < 4; ++i) CHECK(queue.read() == message(static_cast<std::uint64_t>(i), 8));
  if (queue.is_writer()) queue.write(message(5, 8));
  if (rank() > 0) {
    CHECK(queue.read() == message(5, 8));
    CHECK_THROWS_WITH_AS((void)queue.read(soon), doctest::Contains("its writer is rank 0 (tp=0)"),
                         TimeoutError);
  }
  tp.barrier();
  if (queue.is_writer()) queue.write(message(6, 8));
  if (rank() > 0) CHECK(queue.read() == message(6, 8));

  // A timeout in the middle of a message breaks the queue.
  if (queue.is_writer() && queue.local_readers() > 0) {
    CHECK_THROWS_AS(queue.write(message(7, 20 << 10), soon), TimeoutError);
    CHECK_THROWS_WITH_AS(queue.write(message(8, 1), soon), doctest::Contains("is broken"),
                         ClosedError);
  }
  tp.barrier();
  mesh.close();
}

TEST_CASE("a wait for a rank that an exception has taken from the mesh ends with its reason") {
  NEEDS_RANKS(2);
  for (const bool does_writer_fail : {true, false}) {
    const bool fails = (rank() == 0) == does_writer_fail;
    const auto begin = std::chrono::steady_clock::now();
    try {
      Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
      ControlQueue queue{mesh["tp"], 0, {.slots = 2}};
      if (fails) throw DataError{"no disk"};
      for (int i = 0; i < 3; ++i) queue.is_writer() ? queue.write({}) : (void)queue.read();
      FAIL_CHECK("the wait ended");
    } catch (const DataError&) {
      CHECK(fails);
    } catch (const PeerError& error) {
      CHECK_CONTAINS(error.message(), does_writer_fail ? "read of message 0 of the control queue"
                                                       : "write of message 2 of the control queue");
      CHECK_CONTAINS(error.message(), "left the mesh by an exception");
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{5});
    }
    rankmesh_test::wait_for_all();
  }
}

TEST_CASE("a queue does not read what was sent on its communicator before") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  ControlQueue queue{tp, 0};
  const std::int64_t from_elsewhere = tp.size() - 1 - queue.local_readers();
  // The first queue of a mesh has this tag.
  const auto stray = message(9, 40);
  if (queue.is_writer())
    for (std::int64_t r = tp.size() - from_elsewhere; r < tp.size(); ++r)
      MPI_Send(stray.data(), 40, MPI_BYTE, static_cast<int>(r), 20000, tp.native_mpi());
  if (queue.is_writer())
    queue.write(message(1, 30));
  else
    CHECK(queue.read() == message(1, 30));
  Bytes none;
  if (!queue.is_writer()) CHECK_FALSE(queue.try_read(none));
  tp.barrier();
  mesh.close();
}

TEST_CASE("a rank that reads is not silent for its peers") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  ControlQueue queue{mesh["tp"], 0};
  mesh["tp"].barrier();  // a writer that begins a second late would find that the others have left
  if (queue.is_writer())
    CHECK_THROWS_WITH_AS(mesh["tp"].barrier_async().wait(Deadline::Duration{0.9}),
                         doctest::Contains("read of message 0 of the control queue of 'tp'"),
                         TimeoutError);
  else
    CHECK_THROWS_AS((void)queue.read(Deadline::Duration{2}), TimeoutError);
}

TEST_CASE("a queue of one slot is broken by a message of which one chunk alone was written") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto soon = Deadline::Duration{0.1};
  ControlQueue queue{tp, 0, {.slots = 1, .slot_bytes = 128}};
  if (queue.is_writer() && queue.local_readers() > 0) {
    CHECK_THROWS_AS(queue.write(message(1, 300), soon), TimeoutError);
    CHECK_THROWS_WITH_AS(queue.write(message(2, 1), soon), doctest::Contains("is broken"),
                         ClosedError);
  }
  tp.barrier();
  mesh.close();
}

TEST_CASE("invalid arguments throw, and different arguments throw on all members") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  CHECK_THROWS_AS((ControlQueue{tp, tp.size()}), UsageError);
  CHECK_THROWS_AS((ControlQueue{tp, 0, {.slots = 0}}), UsageError);
  CHECK_THROWS_AS((ControlQueue{tp, 0, {.slot_bytes = -1}}), UsageError);
  ControlQueue queue{tp, 0};
  Bytes bytes;
  if (queue.is_writer()) {
    CHECK_THROWS_AS((void)queue.read(), UsageError);
    CHECK_THROWS_AS((void)queue.try_read(bytes), UsageError);
  } else {
    CHECK_THROWS_AS(queue.write(bytes), UsageError);
  }
  if (size() > 1)
    CHECK_THROWS_WITH_AS((ControlQueue{tp, tp.is_first() ? 0 : 1}),
                         doctest::Contains("ControlQueue over 'tp': writer 1"), MismatchError);
  mesh.close();
}

TEST_CASE("a queue whose group is closed, or gone with its mesh, says so") {
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "tp=auto"};
  const auto group = mesh->new_group((*mesh)["tp"].ranks().to_vector());
  ControlQueue of_group{*group, 0}, of_family{(*mesh)["tp"], 0};
  const auto use = [](ControlQueue& queue) {
    queue.is_writer() ? queue.write({}) : (void)queue.read();
  };
  mesh->close(group);
  CHECK_THROWS_WITH_AS(use(of_group), doctest::Contains("is used after close()"), ClosedError);
  mesh->close();
  mesh.reset();
  CHECK_THROWS_WITH_AS(use(of_family),
                       doctest::Contains("ControlQueue over 'tp': the group is gone"), ClosedError);
}
