// SPDX-License-Identifier: BSD-3-Clause
// Ranks that are idle, or done at different times, take the same steps.
#include "rankmesh/exchange/lockstep.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::Lockstep;
using exchange::Step;
using rankmesh_test::rank;
using rankmesh_test::size;

TEST_CASE("every rank runs every step, with tokens or without, until all are done") {
  Mesh mesh{MPI_COMM_WORLD, size() % 2 == 0 ? "dp=auto,tp=2" : "dp=auto"};
  auto& dp = mesh["dp"];
  Lockstep lockstep{dp, {.sizes = {2, 4, 8}, .multiple = 5}};
  // Each rank has different requests; some have none, and some pause between requests.
  std::mt19937 random{static_cast<unsigned>(dp.rank_in_group().value())};
  std::int64_t left =
      dp.rank_in_group().value() % 3 == 2 ? 0 : 30 + static_cast<std::int64_t>(random() % 30);
  const std::vector<std::int64_t> mine{left};
  std::vector<std::int64_t> everything(1);
  dp.all_reduce(mine, everything);
  std::int64_t seen = 0;
  std::int64_t steps = 0, dummies = 0;
  while (true) {
    const std::int64_t batch =
        random() % 4 == 0 ? 0 : std::min<std::int64_t>(left, 1 + random() % 12);
    const std::int32_t mode = static_cast<std::int32_t>(random() % 3);
    const Step step = lockstep.agree({.tokens = batch, .mode = mode, .is_done = left == batch});
    if (step.is_last) break;
    REQUIRE(std::ssize(step.tokens) == dp.size());
    CHECK(step.tokens[static_cast<std::size_t>(dp.rank_in_group().value())] == batch);
    const std::int64_t most = *std::ranges::max_element(step.tokens);
    const std::int64_t expected = most == 0   ? 0
                                  : most <= 2 ? 2
                                  : most <= 4 ? 4
                                  : most <= 8 ? 8
                                              : (most + 4) / 5 * 5;
    CHECK(step.padded == expected);
    CHECK(step.is_dummy == (batch == 0 && most > 0));
    if (batch > 0) CHECK(step.mode <= mode);
    for (const std::int64_t tokens : step.tokens) seen += tokens;
    left -= batch;
    if (step.padded == 0) continue;  // no rank has tokens
    // The collective of the step: of one size, on all ranks, the idle ones too.
    std::vector<std::int32_t> work(static_cast<std::size_t>(step.padded), 1);
    dp.all_reduce(work);
    CHECK(work.back() == dp.size());
    std::vector<std::int32_t> modes{step.mode};
    dp.all_reduce(modes, ReduceOp::min);
    CHECK(modes[0] == step.mode);
    ++steps;
    dummies += step.is_dummy ? 1 : 0;
  }
  CHECK(left == 0);
  CHECK(seen == everything[0]);
  if (dp.rank_in_group() == RankInGroup{2}) CHECK(dummies == steps);
  mesh.close();
}

TEST_CASE(
    "a rank that is done runs dummy steps while others work; a group without work ends at once") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  Lockstep lockstep{mesh["dp"]};
  for (int s = 0; s <= size(); ++s) {  // rank r has one token in steps 0 .. r-1
    const Step step =
        lockstep.agree({.tokens = s < rank() ? 1 : 0, .mode = 7, .is_done = s >= rank() - 1});
    CHECK(step.is_last == (s >= size() - 1));
    CHECK(step.padded == (s < size() - 1 ? 1 : 0));
    CHECK(step.mode == (s < size() - 1 ? 7 : 0));
  }
  Lockstep other{mesh["dp"]};
  CHECK(other.agree({.is_done = true}).is_last);
  mesh.close();
}

TEST_CASE("the mode is the lowest of the ranks with tokens; idle ranks do not lower it") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  Lockstep lockstep{dp};
  for (int first_busy = 0; first_busy < size(); ++first_busy) {
    CAPTURE(first_busy);
    const bool is_busy = rank() >= first_busy;
    // The busy ranks: 10 + their rank. The idle ones: less than any of these.
    const Step step =
        lockstep.agree({.tokens = is_busy ? 1 : 0, .mode = is_busy ? 10 + rank() : rank() % 3});
    CHECK(step.mode == 10 + first_busy);
    CHECK(step.is_dummy == !is_busy);
  }
  const Step highest =
      lockstep.agree({.tokens = rank() == 0 ? 1 : 0, .mode = rank() == 0 ? 255 : 0});
  CHECK(highest.mode == 255);
  mesh.close();
}

TEST_CASE("invalid and different proposals throw on all ranks") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  CHECK_THROWS_AS((Lockstep{dp, {.sizes = {4, 4}}}), UsageError);
  CHECK_THROWS_AS((Lockstep{dp, {.sizes = {0}}}), UsageError);
  CHECK_THROWS_AS((Lockstep{dp, {.multiple = 0}}), UsageError);
  Lockstep negative{dp};
  CHECK_THROWS_WITH_AS((void)negative.agree({.tokens = dp.is_last() ? -1 : 3}),
                       doctest::Contains("with an invalid proposal of"), MismatchError);
  Lockstep done{dp};
  if (!done.agree({.tokens = dp.is_first() ? 0 : 1, .is_done = dp.is_first()}).is_last)
    CHECK_THROWS_AS((void)done.agree({.tokens = 1}), MismatchError);
  Lockstep back{dp};
  if (!back.agree({.tokens = dp.is_first() ? 0 : 1, .is_done = dp.is_first()}).is_last)
    CHECK_THROWS_WITH_AS((void)back.agree({}), doctest::Contains("an invalid proposal of"),
                         MismatchError);
  mesh.close();
}

TEST_CASE("members with other options, or at another step, throw on every rank") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  Lockstep sizes{dp, {.multiple = dp.is_first() ? 2 : 3}};
  CHECK_THROWS_WITH_AS((void)sizes.agree({}), doctest::Contains("over 'dp': multiple 2"),
                       MismatchError);
  Lockstep one{dp}, two{dp};
  (void)one.agree({});
  if (dp.is_first()) {
    CHECK_THROWS_WITH_AS((void)one.agree({}), doctest::Contains("over 'dp': step 1"),
                         MismatchError);
  } else {
    CHECK_THROWS_WITH_AS((void)two.agree({}), doctest::Contains("over 'dp': step 1"),
                         MismatchError);
  }
  mesh.close();
}

TEST_CASE("a lockstep without its mesh says so, and a refused call is no step") {
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "dp=auto"};
  Lockstep lockstep{(*mesh)["dp"]};
  if ((*mesh)["dp"].is_first()) {
    NcclGroup together{*mesh};
    CHECK_THROWS_WITH_AS((void)lockstep.agree({}), doctest::Contains("dp.Lockstep inside"),
                         UsageError);
  }
  CHECK(lockstep.agree({.is_done = true}).is_last);
  mesh->close();
  mesh.reset();
  CHECK_THROWS_WITH_AS((void)lockstep.agree({}),
                       doctest::Contains("Lockstep over 'dp': the group is gone"), ClosedError);
}
