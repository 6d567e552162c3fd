// SPDX-License-Identifier: BSD-3-Clause
// Receives that are cancelled, by the program and by close(). With and without compared calls.
#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "rankmesh/record/find.hpp"
#include "rankmesh/record/read.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"
#include "support/patience.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

namespace {

// Runs a test on a mesh whose messages are not compared, and on one whose messages are.
template <class Test>
void with_and_without_comparison(Test&& test) {
  for (const bool check : {false, true}) {
    CAPTURE(check);
    Mesh mesh{MPI_COMM_WORLD, "pp=auto", {.check = check}};
    test(mesh, mesh["pp"]);
  }
}

}  // namespace

TEST_CASE("a receive without a message is cancelled, and a later one gets the message") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    std::vector<int> first(4, -1), second(4, -1);
    Work receive = pp.recv_async(first, prev, 3);
    Work copy = receive;
    Work other = pp.recv_async(second, prev, 3);
    CHECK(receive.cancel());
    CHECK(receive.test());
    CHECK(copy.cancel());
    CHECK(copy.test());
    pp.barrier();
    pp.send(std::vector<int>(4, rank()), next, 3);
    other.wait();
    CHECK(!other.cancel());  // it is complete
    CHECK(first == std::vector<int>(4, -1));
    CHECK(second == std::vector<int>(4, static_cast<int>(pp.prev_rank().value())));

    auto owning = pp.recv_async(std::vector<int>(2, 7), prev, 3);
    CHECK(owning.cancel());
    CHECK(owning.take() == std::vector<int>(2, 7));
    mesh.close();
  });
}

TEST_CASE("a message has the length of the receive that gets it, not of one that was cancelled") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    std::vector<int> short_one(4);
    CHECK(pp.recv_async(short_one, prev, 3).cancel());
    // The sender gets this message after it has been told that the receive was cancelled.
    int told = -1;
    pp.send_recv(std::vector<int>{rank()}, std::span{&told, 1}, prev, next, 4);
    CHECK(told == pp.next_rank().value());
    std::vector<int> received(8, -1);
    pp.send_recv(std::vector<int>(8, rank()), received, next, prev, 3);
    CHECK(received == std::vector<int>(8, static_cast<int>(pp.prev_rank().value())));
    mesh.close();
  });
}

TEST_CASE("a receive that a message has reached is not cancelled") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    for (const std::size_t count : {std::size_t{3}, std::size_t{1} << 18}) {
      const std::vector<int> sent(count, rank());
      std::vector<int> received(count, -1);
      Work send = pp.send_async(sent, next);
      while (!pp.probe(prev)) mesh.progress();
      Work receive = pp.recv_async(received, prev);
      CHECK(!receive.cancel());
      CHECK(received == std::vector<int>(count, static_cast<int>(pp.prev_rank().value())));
      send.wait();
    }
    mesh.close();
  });
}

TEST_CASE("cancelling races with messages, and no message is lost or received twice") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    // The first half sends to the second one.
    const std::int64_t half = pp.size() / 2;
    const std::int64_t self = pp.rank_in_group().value();
    int cancelled = 0;
    for (int round = 0; round < 200; ++round) {
      // The lengths differ, so that a message that meets a wrong receive is noticed.
      const auto count = static_cast<std::size_t>(1 + round % 3);
      const std::int64_t sender = self < half ? self : self - half;
      const std::vector<int> sent(count, round * 100 + static_cast<int>(sender));
      if (self < half) {
        pp.send(sent, RankInGroup{self + half});
      } else if (self < 2 * half) {
        const std::vector<int> nothing(count, -1);
        std::vector<int> early = nothing, late = nothing;
        Work receive = pp.recv_async(early, RankInGroup{sender});
        for (int i = 0; i < round % 7; ++i) mesh.progress();
        const bool was_cancelled = receive.cancel();
        if (was_cancelled) pp.recv(late, RankInGroup{sender});
        cancelled += was_cancelled ? 1 : 0;
        CHECK((was_cancelled ? late : early) == sent);
        CHECK((was_cancelled ? early : late) == nothing);
      }
    }
    CHECK(cancelled <= 200);
    mesh.close();
  });
}

TEST_CASE("only receives are cancelled; other operations continue") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    int sum = 1;
    Work work = pp.all_reduce_async(sum);
    CHECK_CONTAINS(thrown_by<UsageError>([&] { work.cancel(); }).message(),
                   "cannot be cancelled: only a receive on host memory can be");
    work.wait();
    CHECK(sum == size());
    CHECK(!Work{}.cancel());
    mesh.close();
  });
}

TEST_CASE("close() cancels receives without a message, and says so") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    std::vector<int> values(4, -1);
    Work receive = pp.recv_async(values, prev, 2);
    (void)pp.recv_async(std::vector<int>(9), prev, 2);  // its Work ends at once
    mesh.close();
    CHECK(values == std::vector<int>(4, -1));
    const auto error = thrown_by<ClosedError>([&] { receive.wait(); });
    CHECK_CONTAINS(error.message(), "was cancelled by close(), because no message had come");
    CHECK_CONTAINS(error.hint(), "cancel them with Work::cancel()");
    CHECK_THROWS_AS((void)receive.test(), ClosedError);
  });
}

TEST_CASE("messages that were sent before close() still arrive") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    // The large one needs the receiver while both wait in close().
    std::vector<int> small(4), large(1 << 18);
    (void)pp.recv_async(small, prev, 1);
    (void)pp.recv_async(large, prev, 2);
    (void)pp.send_async(std::vector<int>(small.size(), rank()), next, 1);
    (void)pp.send_async(std::vector<int>(large.size(), rank()), next, 2);
    const int from = static_cast<int>(pp.prev_rank().value());
    mesh.close();
    CHECK(small == std::vector<int>(small.size(), from));
    CHECK(large == std::vector<int>(large.size(), from));
  });
}

TEST_CASE("messages that were sent before close() arrive however long they take") {
  NEEDS_RANKS(2);
  rankmesh_test::ScopedPatience patience;
  patience->on_the_way = {};
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    constexpr int messages = 30;
    std::vector<std::vector<int>> values(messages, std::vector<int>(5000));
    const int from = static_cast<int>(pp.prev_rank().value());
    for (int tag = 0; tag < messages; ++tag) {
      (void)pp.recv_async(values[static_cast<std::size_t>(tag)], prev, tag);
      (void)pp.send_async(std::vector<int>(5000, rank()), next, tag);
    }
    mesh.close();
    CHECK(values == std::vector<std::vector<int>>(messages, std::vector<int>(5000, from)));
  });
}

TEST_CASE("a mesh frees its communicators although close() has cancelled a receive") {
  NEEDS_RANKS(2);
  // MPI deletes the attributes of a communicator when it frees it.
  int freed = 0;
  int key = MPI_KEYVAL_INVALID;
  const auto count = [](MPI_Comm, int, void* value, void*) {
    ++*static_cast<int*>(value);
    return MPI_SUCCESS;
  };
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count, &key, nullptr);
  Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
  auto& pp = mesh["pp"];
  MPI_Comm_set_attr(pp.native_mpi(), key, &freed);
  int value = 0;
  (void)pp.recv_async(value, prev);
  mesh.close();
  CHECK(freed == 1);
  MPI_Comm_free_keyval(&key);
}

TEST_CASE("a receiver that waits in close() already still takes part in a message") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    std::vector<int> large(1 << 18, rank());
    if (rank() == 1) (void)pp.recv_async(large, RankInGroup{0});
    if (rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});  // the other one is in close()
      (void)pp.send_async(large, RankInGroup{1});
    }
    mesh.close();
    CHECK(large == std::vector<int>(large.size(), rank() == 1 ? 0 : rank()));
  });
}

TEST_CASE("closing a dynamic group cancels its receives only") {
  NEEDS_RANKS(2);
  with_and_without_comparison([](Mesh& mesh, GroupCoordinator& pp) {
    int of_group = -1, of_mesh = -1;
    Work kept = pp.recv_async(of_mesh, prev);
    if (rank() < 2) {
      const auto group = mesh.new_group({0, 1});
      Work receive = group->recv_async(of_group, next);
      mesh.close(group);
      CHECK_THROWS_AS(receive.wait(), ClosedError);
    }
    CHECK(!kept.test());
    pp.barrier();
    pp.send(rank(), next);
    kept.wait();
    CHECK(of_mesh == pp.prev_rank().value());
    mesh.close();
  });
}

TEST_CASE("the record marks receives that were cancelled") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "cancelled=auto"};
  auto& group = mesh["cancelled"];
  int value = 0;
  CHECK(group.recv_async(value, prev).cancel());
  group.barrier();
  bool is_found = false;
  for (const record::Source& source : record::sources_of_process(::getpid())) {
    const record::Record record = record::read(record::copy_observed(source), source.path);
    if (record.rank != Rank{rank()} || record.mesh.find("cancelled") == std::string::npos) continue;
    is_found = true;
    REQUIRE(record.calls.size() == 2);
    CHECK(record.calls[0].is_cancelled);
    CHECK(record.calls[0].state == record::State::ended);
    CHECK(!record.calls[1].is_cancelled);
  }
  CHECK(is_found);
  mesh.close();
}
