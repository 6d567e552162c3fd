// SPDX-License-Identifier: BSD-3-Clause
// Messages of a member to itself, in every form, in groups of one rank and of several.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

namespace {

template <class Test>
void in_every_group(Test&& test) {
  for (const bool check : {false, true})
    for (const char* name : {"tp", "one"}) {
      CAPTURE(check);
      CAPTURE(name);
      Mesh mesh{MPI_COMM_WORLD, "one=1,tp=auto", {.check = check}};
      test(mesh[name], mesh[name].rank_in_group());
      mesh.close();
    }
}

// Of a small and of a large message.
const std::vector<std::size_t> counts{0, 3, 100'000};

}  // namespace

TEST_CASE("a member sends to itself before it receives, and the other way round") {
  in_every_group([](GroupCoordinator& group, RankInGroup self) {
    for (const std::size_t count : counts) {
      CAPTURE(count);
      const std::vector<int> values(count, rank() + 7);
      std::vector<int> got(count, -1);
      SUBCASE("send, recv") {
        group.send(values, self, 5);
        CHECK(group.probe(self, 5) == static_cast<std::int64_t>(count * sizeof(int)));
        group.recv(got, self, 5);
      }
      SUBCASE("send, try_recv") {
        CHECK(!group.try_recv(got, self, 5));
        group.send(values, self, 5);
        CHECK(group.try_recv(got, self, 5));
      }
      SUBCASE("recv_async, send") {
        Work receive = group.recv_async(got, self, 5);
        CHECK(receive.test() == false);
        group.send(values, self, 5);
        CHECK(receive.test());
      }
      SUBCASE("send_async, recv_async") {
        Work send = group.send_async(values, self, 5);
        Work receive = group.recv_async(got, self, 5);
        receive.wait();
        send.wait();
      }
      SUBCASE("a temporary is sent") {
        Work send = group.send_async(std::vector<int>(count, rank() + 7), self, 5);
        send.wait();
        group.recv(got, self, 5);
      }
      SUBCASE("send_recv") { group.send_recv(values, got, self, self, 5); }
      SUBCASE("send_recv_async") { group.send_recv_async(values, got, self, self, 5).wait(); }
      CHECK(got == values);
      CHECK(!group.probe(self, 5));
    }
  });
}

TEST_CASE("messages to oneself arrive in order, and tags separate them") {
  in_every_group([](GroupCoordinator& group, RankInGroup self) {
    std::vector<int> first(1), second(1), third(1), other(1);
    group.send(std::vector{1}, self, 1);
    group.send(std::vector{9}, self, 2);
    Work receive = group.recv_async(first, self, 1);
    Work later = group.recv_async(second, self, 1);
    CHECK(receive.test());
    CHECK(!later.test());
    // The receive that waits gets the message of the send_recv, whose own receive gets the next
    // one.
    Work exchange = group.send_recv_async(std::vector{2}, third, self, self, 1);
    CHECK(later.test());
    CHECK(!exchange.test());
    group.send(std::vector{3}, self, 1);
    exchange.wait();
    group.recv(other, self, 2);
    CHECK(first[0] == 1);
    CHECK(second[0] == 2);
    CHECK(third[0] == 3);
    CHECK(other[0] == 9);
  });
}

TEST_CASE("a receive that no message can reach throws, and one in flight can be cancelled") {
  in_every_group([](GroupCoordinator& group, RankInGroup self) {
    std::vector<int> got(2, -1);
    const auto error = thrown_by<UsageError>([&] { group.recv(got, self, 3); });
    CHECK_CONTAINS(error.message(), group.name() + ".recv from rank " + std::to_string(rank()) +
                                        " (tag 3) would wait for ever");
    Work receive = group.recv_async(got, self, 3);
    CHECK_CONTAINS(thrown_by<UsageError>([&] { receive.wait(); }).message(),
                   " (tag 3) would wait for ever");
    CHECK(receive.cancel());
    Work later = group.recv_async(got, self, 4);
    CHECK_THROWS_AS(later.wait(), UsageError);
    group.send(std::vector{6, 7}, self, 4);
    later.wait();
    CHECK(got == std::vector{6, 7});
    got = {-1, -1};
    group.send(std::vector{4, 5}, self, 3);
    CHECK(got == std::vector{-1, -1});
    group.recv(got, self, 3);
    CHECK(got == std::vector{4, 5});
    // Left to close().
    Work forgotten = group.recv_async(got, self, 3);
  });
}

TEST_CASE("a message to oneself of another length or type is refused, and the group goes on") {
  in_every_group([](GroupCoordinator& group, RankInGroup self) {
    std::vector<int> got(2);
    std::vector<float> floats(2);
    group.send(std::vector{1, 2, 3}, self);
    CHECK_CONTAINS(thrown_by<UsageError>([&] { group.recv(got, self); }).message(),
                   "received 3 x int32, but 2 x int32 were expected");
    Work receive = group.recv_async(floats, self);
    group.send(std::vector{1, 2}, self);
    CHECK_CONTAINS(thrown_by<UsageError>([&] { receive.wait(); }).message(),
                   "received 2 x int32, but 2 x float32 were expected");
    group.barrier();
  });
}

TEST_CASE("a schedule needs no special case for one stage") {
  Mesh mesh{MPI_COMM_WORLD, "pp=1,dp=auto"};
  exchange::StageExchange stages{mesh["pp"], {.ring = true}};
  const std::vector<float> activations(40'000, static_cast<float>(rank()));
  std::vector<float> next_activations(40'000, -1), gradients(40'000, -1);
  stages.send_forward(activations);
  stages.recv_forward(next_activations);
  CHECK(next_activations == activations);
  stages.send_backward_recv_backward(activations, gradients);
  CHECK(gradients == activations);
  mesh.close();
}
