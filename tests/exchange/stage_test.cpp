// SPDX-License-Identifier: BSD-3-Clause
// Neighbouring stages exchange in both directions without waiting for each other in a circle.
#include <doctest/doctest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::from_next;
using exchange::from_prev;
using exchange::StageExchange;
using exchange::to_next;
using exchange::to_prev;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// Larger than what MPI sends without a receiver, so that a blocking order would deadlock.
constexpr std::size_t large = 40000;

std::vector<float> values(std::int64_t stage, float what, std::size_t n = large) {
  return std::vector<float>(n, static_cast<float>(stage) * 10 + what);
}

}  // namespace

TEST_CASE("all four moves at once, of large buffers, on the open pipeline and around the ring") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "pp=auto,dp=2" : "pp=auto"};
  auto& pp = mesh["pp"];
  const std::int64_t self = pp.rank_in_group().value();
  const std::int64_t n = pp.size();
  for (const bool ring : {false, true}) {
    CAPTURE(ring);
    StageExchange stages{pp, {.ring = ring, .tag = 4}};
    const auto activations = values(self, 1);
    const auto gradients = values(self, 2);
    auto got_activations = values(self, -1);
    auto got_gradients = values(self, -2);
    stages.run({to_prev(gradients), to_next(activations), from_prev(got_activations),
                from_next(got_gradients)});
    const bool has_prev = ring || self > 0;
    const bool has_next = ring || self + 1 < n;
    CHECK(got_activations == (has_prev ? values((self + n - 1) % n, 1) : values(self, -1)));
    CHECK(got_gradients == (has_next ? values((self + 1) % n, 2) : values(self, -2)));
  }
  mesh.close();
}

TEST_CASE("tags of a stage exchange go from 0 to the last but one") {
  Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
  auto& pp = mesh["pp"];
  CHECK_THROWS_AS((StageExchange{pp, {.tag = -1}}), UsageError);
  CHECK_THROWS_AS((StageExchange{pp, {.tag = 16383}}), UsageError);
  StageExchange stages{pp, {.tag = 16382}};  // the backward direction has the last tag
  const std::int64_t self = pp.rank_in_group().value();
  const auto gradients = values(self, 2, 3);
  auto got = values(self, -2, 3);
  stages.run({to_prev(gradients), from_next(got)});
  CHECK(got == (self + 1 < pp.size() ? values(self + 1, 2, 3) : values(self, -2, 3)));
  mesh.close();
}

TEST_CASE("the steps of the schedules") {
  Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
  auto& pp = mesh["pp"];
  const std::int64_t self = pp.rank_in_group().value();
  StageExchange stages{pp};
  auto x = values(self, 0);
  // Activations pass through all stages one by one, each adding its number; gradients come back.
  float expected = static_cast<float>(self) * 10;
  stages.recv_forward(x);
  for (std::int64_t s = 0; s < self; ++s) expected = static_cast<float>(s + 1);
  if (self > 0) {
    CHECK(x == std::vector<float>(large, expected - 1));
    for (float& v : x) v += 1;
  }
  stages.send_forward(x);
  auto gradient = values(0, 0);
  stages.recv_backward(gradient);
  CHECK(gradient[0] == static_cast<float>(pp.is_last() ? 0 : pp.size() - 1 - self));
  for (float& v : gradient) v += 1;
  stages.send_backward(gradient);

  // Fused steps, with two buffers of different type in one direction.
  auto in = values(self, 5);
  auto out = values(self, 6);
  stages.send_forward_recv_forward(in, out);
  CHECK(out == (self > 0 ? values(self - 1, 5) : values(self, 6)));
  out = values(self, 6);
  stages.send_backward_recv_backward(in, out);
  CHECK(out == (pp.is_last() ? values(self, 6) : values(self + 1, 5)));
  std::vector<int> number{static_cast<int>(self)};
  std::vector<int> theirs{-1};
  out = values(self, 6);
  auto works = stages.start({to_next(number), to_next(in), from_prev(theirs), from_prev(out)});
  while (!works.test()) mesh.progress();
  works.wait(Deadline::Duration{1});
  CHECK(theirs[0] == (self > 0 ? static_cast<int>(self) - 1 : -1));
  CHECK(out == (self > 0 ? values(self - 1, 5) : values(self, 6)));
  // Alternate ends of one pair, as in the steady phase of 1F1B.
  if (pp.size() > 1 && self == 0) {
    stages.send_forward_recv_backward(in, out);
    CHECK(out == values(1, 5));
  }
  if (self == 1) {
    stages.run({from_prev(out), to_prev(in)});
    CHECK(out == values(0, 5));
  }
  CHECK_THROWS_AS((StageExchange{pp, {.tag = 16383}}), UsageError);
  mesh.close();
}

TEST_CASE("a buffer that is received has memory of its own") {
  Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
  StageExchange stages{mesh["pp"], {.ring = true}};
  auto all = values(0, 0, 100);
  const std::span first = std::span{all}.first(60), second = std::span{all}.last(60);
  const auto text_of = [&](const std::vector<exchange::StageMove>& moves) {
    return thrown_by<UsageError>([&] { stages.run(moves); }).message();
  };
  CHECK_CONTAINS(text_of({to_next(all), from_prev(all)}), "to_next and from_prev of 'pp' overlap");
  CHECK_CONTAINS(text_of({from_next(first), to_next(second)}), "from_next and to_next of 'pp'");
  CHECK_CONTAINS(text_of({from_next(first), from_prev(second)}), "from_next and from_prev of");
  // What is only sent may be sent twice, and what leaves an open pipeline is not moved.
  auto theirs = values(0, -1, 100), too = values(0, -1, 100);
  stages.run({to_next(all), to_prev(all), from_prev(theirs), from_next(too)});
  CHECK(theirs == all);
  CHECK(too == all);
  if (size() == 1) StageExchange{mesh["pp"]}.send_forward_recv_forward(all, all);
  mesh.close();
}

TEST_CASE("the deadline of the mesh ends waits for moves and for asynchronous operations") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.timeout = Deadline::Duration{60};
  options.deadline = Deadline::Duration{0.3};
  Mesh mesh{MPI_COMM_WORLD, "pp=auto", options};
  auto& pp = mesh["pp"];
  // MPI may use the memory of the receives until the process ends.
  static auto got = values(0, 0, 10), too = values(0, 0, 10);
  const std::string hint = "RANKMESH_DEADLINE or MeshOptions::deadline sets the time limit";
  std::vector<Work> works;
  works.push_back(pp.recv_async(got, next, 7));
  CHECK_CONTAINS(thrown_by<TimeoutError>([&] { (void)wait_any(works); }).hint(), hint);
  CHECK_CONTAINS(
      thrown_by<TimeoutError>([&] { (void)wait_any(works, Deadline::Duration{0.1}); }).hint(),
      "the argument of the call that waits");
  StageExchange stages{pp, {.ring = true}};
  CHECK_CONTAINS(thrown_by<TimeoutError>([&] { stages.recv_forward(too); }).hint(), hint);
  wait_for_all();
}

TEST_CASE("close names the family by which a message was sent, if several share the group") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.check = false;  // it would wait for the receive
  Mesh mesh{MPI_COMM_WORLD, fmt::format("cp={0},tp=1 | ep={0}", size()), options};
  if (rank() == 0) mesh["ep"].send(values(0, 0, 4), 1);
  wait_for_all();
  CHECK_CONTAINS(thrown_by<MismatchError>([&] { mesh.close(); }).message(),
                 "the last by ep.send(4 x float32)");
}

// MPI gives the identities of freed communicators to new ones, and with them their messages.
TEST_CASE("a message that nobody received is not received in the next mesh or group") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.check = false;  // it would wait for the receive
  options.routes = "*.*:host=mpi";
  const auto send_alone = [](GroupCoordinator& group) {
    if (rank() == 0) group.send(values(0, 1, 4), 1);
    wait_for_all();
  };
  const auto exchange = [](GroupCoordinator& group) {
    std::vector<float> got(4);
    if (rank() == 0) group.send(values(0, 2, 4), 1);
    if (rank() == 1) group.recv(got, 0);
    if (rank() == 1) CHECK(got == values(0, 2, 4));
  };
  {
    Mesh mesh{MPI_COMM_WORLD, "pp=auto", options};
    send_alone(mesh["pp"]);
    CHECK_CONTAINS(thrown_by<MismatchError>([&] { mesh.close(); }).message(), "1 message sent");
  }
  Mesh mesh{MPI_COMM_WORLD, "pp=auto", options};
  exchange(mesh["pp"]);
  const auto first = mesh.new_group(mesh["pp"].ranks().to_vector(), "first");
  send_alone(*first);
  CHECK_CONTAINS(thrown_by<MismatchError>([&] { mesh.close(first); }).message(), "1 message sent");
  const auto second = mesh.new_group(mesh["pp"].ranks().to_vector(), "second");
  exchange(*second);
  mesh.close();
}

TEST_CASE("a call that waits for moves on host memory is refused inside an NcclGroup") {
  MeshOptions options;
  options.devices = DeviceUse::off;
  Mesh mesh{MPI_COMM_WORLD, "pp=auto", options};
  StageExchange stages{mesh["pp"], {.ring = true}};
  auto got = values(0, -1, 4);
  NcclGroup together{mesh};
  CHECK_THROWS_WITH_AS(stages.run({to_next(values(rank(), 1, 4)), from_prev(got)}),
                       doctest::Contains("pp.StageExchange::run inside an NcclGroup"), UsageError);
  together.end();
  CHECK(got == values(0, -1, 4));
  mesh.close();
}

TEST_CASE("an exchange without its mesh says so") {
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "pp=auto"};
  StageExchange stages{(*mesh)["pp"]};
  mesh->close();
  mesh.reset();
  auto x = values(0, 0, 4);
  CHECK_THROWS_WITH_AS(stages.send_forward(x),
                       doctest::Contains("StageExchange over 'pp': the group is gone"),
                       ClosedError);
}
