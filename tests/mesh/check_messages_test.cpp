// SPDX-License-Identifier: BSD-3-Clause
// The option `check`: messages between two members that are compared.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "mesh/check_help.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::Adopted;
using rankmesh_test::checked;
using rankmesh_test::message_of;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::wait_for_all;

TEST_CASE("check: messages of another type or length are named at both ends") {
  NEEDS_RANKS(2);
  for (const bool is_async : {false, true})
    for (const bool is_adopted : {false, true}) {
      Adopted a{checked()};
      GroupCoordinator& g = is_adopted ? *a.group : a.mesh["tp"];
      const std::string name = is_adopted ? "all" : "tp";
      std::vector<float> floats(4);
      std::vector<double> doubles(4);
      std::string message;
      if (rank() == 0)
        message = message_of<MismatchError>(
            [&] { is_async ? g.send_async(floats, 1).wait() : g.send(floats, 1); });
      if (rank() == 1)
        message = message_of<MismatchError>(
            [&] { is_async ? g.recv_async(doubles, 0).wait() : g.recv(doubles, 0); });
      if (rank() < 2)
        CHECK(message == "rank 0 (tp=0): " + name + ".send(4 x float32 to rank 1, tag 0); " +
                             "rank 1 (tp=1): " + name + ".recv(4 x float64 from rank 0, tag 0)");
      wait_for_all();
    }
}

TEST_CASE("check: send_recv that differs is named at both ends") {
  NEEDS_RANKS(2);
  SKIP_UNLESS(size() == 2, "needs 2 ranks");
  Adopted a{checked()};
  std::vector<float> in(rank() == 0 ? 300 : 200);
  std::vector<float> out(300);
  const std::string message =
      message_of<MismatchError>([&] { a.mesh["tp"].send_recv(in, out, 1 - rank(), 1 - rank()); });
  CHECK_CONTAINS(message,
                 "rank 1 (tp=1): tp.send_recv(200 x float32 to rank 0, tag 0); "
                 "rank 0 (tp=0): tp.send_recv(300 x float32 from rank 1, tag 0)");
  wait_for_all();
}

TEST_CASE("check: messages keep their order, with tags in any order") {
  NEEDS_RANKS(2);
  Adopted a{checked()};
  GroupCoordinator& g = a.mesh["tp"];
  std::vector<int> values(6);
  if (rank() == 0) {
    std::vector<int> sent{0, 1, 2, 3, 4, 5};
    std::vector<Work> works;
    for (int i = 0; i < 6; ++i)
      works.push_back(
          g.send_async(std::span{sent}.subspan(static_cast<std::size_t>(i), 1), 1, i % 2));
    works.back().wait();
    for (Work& work : works) work.wait();
  } else if (rank() == 1) {
    for (const int i : {1, 0, 3, 2, 5, 4})
      g.recv(std::span{values}.subspan(static_cast<std::size_t>(i), 1), 0, i % 2);
    CHECK(values == std::vector<int>{0, 1, 2, 3, 4, 5});
  }
  a.mesh.close();
  MPI_Comm_free(&a.comm);
}

TEST_CASE("check: a send that meets an all_reduce ends in errors that name both") {
  NEEDS_RANKS(2);
  Adopted a{checked(std::chrono::seconds{2})};
  std::vector<float> values(1024);
  std::string message;
  wait_for_all();
  if (rank() == 0) message = message_of<TimeoutError>([&] { a.group->send(values, 1); });
  if (rank() != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds{900});  // rank 0 gives up first
    message = message_of<TimeoutError>([&] { a.group->all_reduce(values); });
  }
  if (rank() == 0) {
    CHECK_CONTAINS(message, "all.send to rank 1");
    CHECK_CONTAINS(message, "all.all_reduce(1024 x float32, sum, in place), call 1");
  }
  if (rank() == 1) CHECK_CONTAINS(message, "all.all_reduce(1024 x float32");
  wait_for_all();
}

TEST_CASE("check: a message that differs is told to the members that wait in a collective") {
  NEEDS_RANKS(3);
  Adopted a{checked(std::chrono::seconds{10})};
  GroupCoordinator& g = *a.group;
  auto& values = *new std::vector<float>(4);
  std::vector<float> eight(8);
  wait_for_all();
  std::string message;
  if (rank() == 0) {
    Work never = g.all_reduce_async(values);
    CHECK_THROWS_AS(g.send(values, 1), MismatchError);
    message = message_of<MismatchError>([&] { never.wait(); });
  }
  if (rank() == 1) message = message_of<MismatchError>([&] { g.recv(eight, 0); });
  if (rank() > 1) message = message_of<PeerError>([&] { g.all_reduce(values); });
  CHECK_CONTAINS(message, "all.send(4 x float32 to rank 1, tag 0)");
  CHECK_CONTAINS(message, "all.recv(8 x float32 from rank 0, tag 0)");
  wait_for_all();
}

TEST_CASE("two meshes that adopt one communicator under one name lose no messages") {
  NEEDS_RANKS(2);
  Adopted a{checked()};
  Mesh other{MPI_COMM_WORLD, "dp=auto", checked()};
  const auto again = other.adopt(a.comm, "all");
  for (int round = 0; round < 20; ++round) {
    int mine = rank(), first = -1, second = -1;
    Work receive = a.group->recv_async(std::span{&first, 1}, prev, 1);
    Work send = again->send_async(std::span{&mine, 1}, next, 2);
    again->recv(std::span{&second, 1}, prev, 2);
    a.group->send(std::span{&mine, 1}, next, 1);
    receive.wait();
    send.wait();
    CHECK(first == second);
  }
}

// Groups have 1,800 tags, so some of so many groups have the same ones.
TEST_CASE("many groups that adopt one communicator lose no messages") {
  NEEDS_RANKS(2);
  constexpr int count = 200;
  Adopted a{checked()};
  std::vector<std::shared_ptr<GroupCoordinator>> groups;
  for (int i = 0; i < count; ++i)
    groups.push_back(a.mesh.adopt(a.comm, "all " + std::to_string(i)));
  std::vector<int> out(count), in(count, -1);
  std::vector<Work> works;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = size() * static_cast<int>(i) + rank();
    works.push_back(groups[i]->recv_async(std::span{in}.subspan(i, 1), prev, 1));
    works.push_back(groups[i]->send_async(std::span{out}.subspan(i, 1), next, 1));
  }
  // MPI carries all messages with one tag, so their groups may be mixed up, but none is lost.
  for (Work& work : works) work.wait();
  std::ranges::sort(in);
  for (std::size_t i = 0; i < count; ++i)
    CHECK(in[i] == size() * static_cast<int>(i) + (rank() + size() - 1) % size());
  a.mesh.close();
  MPI_Comm_free(&a.comm);
}
