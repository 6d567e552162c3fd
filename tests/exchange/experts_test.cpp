// SPDX-License-Identifier: BSD-3-Clause
// Expert dispatch against one plain process, on host memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "exchange/experts_reference.hpp"
#include "support/checks.hpp"
#include "support/iterations.hpp"

using namespace experts_reference;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;
using rankmesh_test::wait_for_all;

namespace {

// The platform of host memory: no copies.
struct OnHost {
  template <class T>
  using Memory = std::vector<T>;
  static ExpertRoute route(ExpertDispatcher& dispatcher, const std::vector<std::int32_t>& ids,
                           std::int64_t top_k) {
    return dispatcher.route(ids, top_k);
  }
  template <class T>
  static const std::vector<T>& put(const std::vector<T>& values) {
    return values;
  }
  template <class T>
  static std::vector<T>& view(std::vector<T>& values) {
    return values;
  }
  template <class T>
  static const std::vector<T>& view(const std::vector<T>& values) {
    return values;
  }
  template <class T>
  static std::vector<T> get(const std::vector<T>& values) {
    return values;
  }
  static StreamRef stream() { return {}; }
};

}  // namespace

TEST_CASE("random steps of expert dispatch equal one process, with and without a capacity") {
  MeshOptions options;
  if (rankmesh_test::size() % 2 != 0) options.deadline = Deadline::Duration{60};  // polled
  Mesh mesh{MPI_COMM_WORLD, mesh_text(), options};
  std::mt19937 random{11U + static_cast<unsigned>(rankmesh_test::size())};
  // Each size of a job begins with another combination of the group and the types.
  const int first = 5 * rankmesh_test::size();
  const int rounds = rankmesh_test::iterations(12, rankmesh_test::size());
  for (int round = first; round < first + rounds; ++round) {
    CAPTURE(round);
    GroupCoordinator& ep = mesh[round % 4 == 3 ? "dp" : "ep"];
    const Shape shape = random_shape(random, ep.size());
    test_step<float>(ep, shape, random, OnHost{});
    if (round % 3 == 0) test_step<double>(ep, shape, random, OnHost{});
    if (round % 3 == 1) test_step<BFloat16>(ep, shape, random, OnHost{});
    if (round % 3 == 2) test_step<Float16>(ep, shape, random, OnHost{});
  }
  mesh.close();
}

TEST_CASE("no rank has tokens, or one rank has all of them") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(5, ep.size()), {.alignment = 4}};
  const ExpertRoute none = dispatcher.route({}, 3);
  CHECK(none.rows() == 0);
  std::vector<float> nothing;
  dispatcher.dispatch(none, nothing, nothing);
  dispatcher.combine(none, nothing, nothing, nothing);

  const bool has_all = ep.is_last();
  const std::vector<std::int32_t> ids(has_all ? 7 : 0, 2);  // all to expert 2
  const ExpertRoute all = dispatcher.route(ids, 1);
  const std::int64_t per_rank = dispatcher.map().slots_per_rank();
  CHECK(all.rows() == (2 / per_rank == ep.rank_in_group().value() ? 8 : 0));
  const std::vector<float> tokens(has_all ? 7 * 3 : 0, 1.5F);
  const std::vector<float> weights(ids.size(), 2.0F);
  std::vector<float> rows(static_cast<std::size_t>(all.rows() * 3), -1.0F);
  dispatcher.dispatch(all, tokens, rows);
  if (!rows.empty()) CHECK(rows[20] == 1.5F);
  if (!rows.empty()) CHECK(rows[21] == 0.0F);  // padding
  std::vector<float> out(tokens.size());
  dispatcher.combine(all, rows, weights, out);
  CHECK(out == std::vector<float>(tokens.size(), 3.0F));
  mesh.close();
}

TEST_CASE("a capacity drops the last tokens, and shapes do not depend on the choices") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  const auto n = ep.size();
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(2 * n, n), {.alignment = 8, .capacity = 3}};
  const ExpertRoute crowded = dispatcher.route(std::vector<std::int32_t>{1, 1, 0, 1, 1, -1}, 1);
  CHECK(crowded.rows() == 2 * ((3 * n + 7) / 8 * 8));
  CHECK(crowded.counts()[0] == 3 * n);
  CHECK(crowded.dropped() == 2);
  CHECK(crowded.is_sent(3, 0));
  CHECK_FALSE(crowded.is_sent(4, 0));
  const ExpertRoute idle = dispatcher.route({}, 1);
  CHECK(idle.rows() == crowded.rows());
  const std::vector<float> tokens{1, 2, 3, 4, 5, 6};
  std::vector<float> rows(static_cast<std::size_t>(crowded.rows()), -1.0F);
  dispatcher.dispatch(crowded, tokens, rows);
  if (ep.is_first())
    CHECK(std::vector(rows.begin(), rows.begin() + 3) == std::vector<float>{3, 0, 0});
  std::vector<float> out(6, -1.0F);
  dispatcher.combine(crowded, rows, std::vector<float>(6, 1.0F), out);
  CHECK(out == std::vector<float>{1, 2, 3, 4, 0, 0});
  mesh.close();
}

TEST_CASE(
    "a new map holds from the next route on; tokens of a redundant expert are spread over its "
    "slots") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  const auto n = static_cast<std::int32_t>(ep.size());
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(n, n)};
  const std::vector<std::int32_t> hot(static_cast<std::size_t>(2 * n),
                                      0);  // every token wants expert 0
  const ExpertRoute before = dispatcher.route(hot, 1);
  CHECK(before.rows() == (ep.is_first() ? 2 * n * n : 0));
  // Two slots per rank: its own expert, and a copy of expert 0.
  std::vector<std::int32_t> slots;
  for (std::int32_t e = 0; e < n; ++e) slots.insert(slots.end(), {e, 0});
  dispatcher.set_map(ExpertMap{slots, n, n});
  const ExpertRoute after = dispatcher.route(hot, 1);
  CHECK(after.counts()[1] > 0);
  std::vector<std::int64_t> rows{after.rows(), -after.rows()};
  ep.all_reduce(rows, ReduceOp::max);
  CHECK(rows[0] + rows[1] <= 2 * n);  // rank 0 has one slot more than the others
  CHECK(after.experts()[0] == static_cast<std::int32_t>(ep.rank_in_group().value()));
  CHECK(after.experts()[1] == 0);
  // The old route is good as before.
  const std::vector<float> tokens(hot.size(), static_cast<float>(ep.rank_in_group().value() + 1));
  std::vector<float> moved(static_cast<std::size_t>(before.rows()));
  dispatcher.dispatch(before, tokens, moved);
  std::vector<float> out(tokens.size());
  dispatcher.combine(before, moved, std::vector<float>(tokens.size(), 1.0F), out);
  CHECK(out == tokens);
  mesh.close();
}

TEST_CASE("misuse of an expert dispatcher throws; different arguments throw on every rank") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  const auto n = ep.size();
  CHECK_THROWS_AS((ExpertMap{{0, 1, 1}, 3, 1}), UsageError);  // no slot for 2
  for (const std::int32_t none : {-2, 2, 3})
    CHECK_THROWS_WITH_AS((ExpertMap{{0, 1, none}, 2, 1}),
                         doctest::Contains("slot 2 of an expert map holds expert"), UsageError);
  CHECK_THROWS_AS((ExpertMap{{0, 1, -1}, 2, 2}), UsageError);  // slots that cannot be shared
  CHECK_THROWS_AS((void)ExpertMap::contiguous(0, 2), UsageError);
  CHECK_THROWS_AS((ExpertDispatcher{ep, ExpertMap::contiguous(4, n + 1)}), UsageError);
  CHECK_THROWS_AS((ExpertDispatcher{ep, ExpertMap::contiguous(4, n), {.alignment = 0}}),
                  UsageError);
  if (n > 1) {
    const std::int64_t mine = ep.is_last() ? 9 : 8;
    CHECK_THROWS_WITH_AS((ExpertDispatcher{ep, ExpertMap::contiguous(mine, n)}),
                         doctest::Contains("ExpertDispatcher over 'ep'"), MismatchError);
    CHECK_THROWS_AS((ExpertDispatcher{ep, ExpertMap::contiguous(4, n), {.alignment = mine}}),
                    MismatchError);
  }
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(4, n)};
  if (n > 1) {  // a map that differs is refused, and the old one stays
    CHECK_THROWS_WITH_AS(
        dispatcher.set_map(ExpertMap::contiguous(4 + ep.rank_in_group().value(), n)),
        doctest::Contains("ExpertDispatcher::set_map over 'ep'"), MismatchError);
    CHECK(dispatcher.map().experts() == 4);
  }
  CHECK_THROWS_AS((void)dispatcher.route(std::vector<std::int32_t>{0, 4}, 1), UsageError);
  CHECK_THROWS_AS((void)dispatcher.route(std::vector<std::int32_t>{0, -2}, 1), UsageError);
  CHECK_THROWS_AS((void)dispatcher.route(std::vector<std::int32_t>{0, 1, 2}, 2), UsageError);
  const ExpertRoute route = dispatcher.route(std::vector<std::int32_t>{0, 1}, 1);
  std::vector<float> tokens(6), rows(static_cast<std::size_t>(route.rows() * 3));
  std::vector<float> wrong(static_cast<std::size_t>(route.rows() * 3 + 1));
  CHECK_THROWS_AS(dispatcher.dispatch(route, tokens, wrong), UsageError);
  CHECK_THROWS_AS(dispatcher.combine(route, rows, std::vector<float>(3), tokens), UsageError);
  std::vector<float> choices(7);
  CHECK_THROWS_AS(dispatcher.collect_choices(route, rows, choices), UsageError);
  std::vector<std::int32_t> integers(6), integer_rows(rows.size());
  CHECK_THROWS_AS(dispatcher.dispatch(route, integers, integer_rows), UnsupportedError);
  mesh.close();
}

TEST_CASE("dispatch and combine are different calls, also if they move as many rows") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "ep=auto", {.check = true}};
  ExpertDispatcher experts{mesh["ep"], ExpertMap::contiguous(size(), size())};
  std::vector<std::int32_t> ids(static_cast<std::size_t>(size()));
  std::iota(ids.begin(), ids.end(), 0);
  const auto route = experts.route(ids, size());
  std::vector<float> token(2, 1), rows(ids.size() * 2), out(2);
  const std::vector<float> weights(ids.size(), 1);
  const auto text = thrown_by<MismatchError>([&] {
                      if (rank() == 0)
                        experts.combine(route, rows, weights, out);
                      else
                        experts.dispatch(route, token, rows);
                    }).message();
  CHECK_CONTAINS(text, "ep.ExpertDispatcher::combine: all_to_all_v");
  CHECK_CONTAINS(text, "ep.ExpertDispatcher::dispatch: all_to_all_v");
  wait_for_all();
}

TEST_CASE("rows and tokens that overlap are refused on every rank") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  const auto n = ep.size();
  const auto un = static_cast<std::size_t>(n);
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(n, n)};
  // A token for each rank: every rank has rows.
  std::vector<std::int32_t> ids(un);
  std::iota(ids.begin(), ids.end(), 0);
  const ExpertRoute route = dispatcher.route(ids, 1);
  REQUIRE(route.rows() == n);
  const std::vector<float> weights(un, 1.0F);
  std::vector<float> memory(6 * un);
  const std::span all{memory};
  const auto tokens = all.first(3 * un);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, 3 * un - 1}) {
    CAPTURE(offset);
    const auto rows = all.subspan(offset, 3 * un);
    CHECK_THROWS_WITH_AS(dispatcher.dispatch(route, tokens, rows), doctest::Contains("overlap"),
                         UsageError);
    CHECK_THROWS_WITH_AS(dispatcher.combine(route, rows, weights, tokens),
                         doctest::Contains("overlap"), UsageError);
  }
  std::ranges::fill(tokens, 2.0F);
  const auto beside = all.last(3 * un);
  dispatcher.dispatch(route, tokens, beside);
  CHECK(memory == std::vector<float>(6 * un, 2.0F));
  mesh.close();
}

namespace {

// Two parts of the tokens move at the same time, with weights of the type of the rows. Everything
// equals the blocking calls with float weights.
template <class T>
void overlap_two_parts(GroupCoordinator& ep, std::int64_t hidden) {
  constexpr std::int64_t top_k = 2, tokens_of_part = 5;
  ExpertDispatcher dispatcher{
      ep, ExpertMap::contiguous(2 * ep.size(), ep.size()), {.alignment = 4}};
  struct Part {
    std::vector<std::int32_t> ids;
    std::optional<ExpertRoute> route;
    std::vector<T> tokens, rows, out, weights;
    std::vector<float> float_weights;
  };
  std::array<Part, 2> parts;
  const auto self = static_cast<std::int32_t>(ep.rank_in_group().value());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Part& part = parts[p];
    const auto first = static_cast<std::int32_t>(p);
    for (std::int32_t i = 0; i < tokens_of_part * top_k; ++i) {
      part.ids.push_back((self + 3 * i + first) % static_cast<std::int32_t>(2 * ep.size()));
      part.float_weights.push_back(static_cast<float>(i % 5 - 2) / 4);
      part.weights.push_back(static_cast<T>(part.float_weights.back()));
    }
    for (std::int64_t i = 0; i < tokens_of_part * hidden; ++i)
      part.tokens.push_back(static_cast<T>(static_cast<float>(i % 7 + self + first)));
    part.route = dispatcher.route(part.ids, top_k);
    part.rows.resize(static_cast<std::size_t>(part.route->rows() * hidden));
    part.out.resize(part.tokens.size());
  }
  const auto is_same = [](const std::vector<T>& a, const std::vector<T>& b) {
    return std::ranges::equal(
        a, b, [](T x, T y) { return static_cast<float>(x) == static_cast<float>(y); });
  };
  std::vector<Work> works;
  for (Part& part : parts)
    works.push_back(dispatcher.dispatch_async(*part.route, part.tokens, part.rows));
  for (Work& work : works) work.wait();
  works.clear();
  for (Part& part : parts) {
    std::vector<T> rows(part.rows.size(), static_cast<T>(-1.0F));
    dispatcher.dispatch(*part.route, part.tokens, rows);
    CHECK(is_same(part.rows, rows));
  }
  for (Part& part : parts)
    works.push_back(
        dispatcher.combine_async(*part.route, part.rows, std::vector<T>(part.weights), part.out));
  while (!works[1].test()) {
  }
  works[0].wait();
  for (Part& part : parts) {
    std::vector<T> out(part.out.size());
    dispatcher.combine(*part.route, part.rows, part.float_weights, out);
    CHECK(is_same(part.out, out));
    std::vector<T> again(part.out.size());
    dispatcher.combine(*part.route, part.rows, part.weights, again);
    CHECK(is_same(again, out));
  }
}

}  // namespace

TEST_CASE("two parts of the tokens are in flight, and the weights have the type of the rows") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  for (const std::int64_t hidden : {1, 3, 20'000}) {
    overlap_two_parts<float>(mesh["ep"], hidden);
    overlap_two_parts<double>(mesh["ep"], hidden);
    overlap_two_parts<BFloat16>(mesh["ep"], hidden);
    overlap_two_parts<Float16>(mesh["ep"], hidden);
  }
  mesh.close();
}

TEST_CASE("a dispatch that is too short is refused before anything moves") {
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  ExpertDispatcher dispatcher{ep, ExpertMap::contiguous(ep.size(), ep.size())};
  const std::vector<std::int32_t> ids{0, 0};
  const ExpertRoute route = dispatcher.route(ids, 1);
  const std::vector<float> tokens(6);
  std::vector<float> rows(static_cast<std::size_t>(route.rows() * 3) + 1);
  CHECK_THROWS_AS((void)dispatcher.dispatch_async(route, tokens, rows), UsageError);
  rows.pop_back();
  std::vector<float> out(6);
  CHECK_THROWS_AS((void)dispatcher.combine_async(route, rows, std::vector<float>(1), out),
                  UsageError);
  dispatcher.dispatch(route, tokens, rows);  // the group goes on
  mesh.close();
}

TEST_CASE("the route of another group is refused") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "ep=auto"};
  auto& ep = mesh["ep"];
  const auto group = mesh.new_group({mesh.rank()});
  ExpertDispatcher alone{*group, ExpertMap::contiguous(1, 1)};
  ExpertDispatcher experts{ep, ExpertMap::contiguous(ep.size(), ep.size())};
  const ExpertRoute route = alone.route(std::vector<std::int32_t>{0, 0}, 1);
  const std::vector<float> tokens(2), weights(2);
  std::vector<float> rows(2), out(2);
  const auto refused = [](const std::function<void()>& call) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("the route is one of a group of 1 ranks"),
                         UsageError);
  };
  refused([&] { experts.dispatch(route, tokens, rows); });
  refused([&] { experts.combine(route, rows, weights, out); });
  refused([&] { experts.collect_choices(route, rows, out); });
  ep.barrier();
  mesh.close();
}

TEST_CASE("a dispatcher without its mesh says so") {
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "ep=auto"};
  ExpertDispatcher experts{(*mesh)["ep"], ExpertMap::contiguous(size(), size())};
  const std::vector<std::int32_t> ids{0, 0};
  const ExpertRoute route = experts.route(ids, 1);
  const std::vector<float> tokens(2), weights(2);
  std::vector<float> rows(static_cast<std::size_t>(route.rows())), out(2);
  mesh->close();
  mesh.reset();
  const auto refused = [](const std::function<void()>& call) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("ExpertDispatcher over 'ep': the group is gone"),
                         ClosedError);
  };
  refused([&] { (void)experts.route(ids, 1); });
  refused([&] { experts.set_map(ExpertMap::contiguous(size(), size())); });
  refused([&] { experts.dispatch(route, tokens, rows); });
  refused([&] { (void)experts.dispatch_async(route, tokens, rows); });
  refused([&] { experts.combine(route, rows, weights, out); });
  refused([&] { (void)experts.combine_async(route, rows, weights, out); });
  refused([&] { experts.collect_choices(route, rows, out); });
  CHECK(experts.map().experts() == size());
}
