// SPDX-License-Identifier: BSD-3-Clause
// Prefixes, prints, seeds, replicas, norms and times, on meshes whose coordinates differ.
#include <cmath>
#include <complex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/helpers/broadcast_parameters.hpp"
#include "rankmesh/helpers/global_norm.hpp"
#include "rankmesh/helpers/prefix.hpp"
#include "rankmesh/helpers/print.hpp"
#include "rankmesh/helpers/seed.hpp"
#include "rankmesh/helpers/stopwatch.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

// Every number of ranks has a mesh with two dimensions; dp has 1 to 3 ranks.
std::string two_dimensions() {
  const int dp = size() % 2 == 0 ? 2 : size() % 3 == 0 ? 3 : 1;
  return "dp=" + std::to_string(dp) + ",tp=" + std::to_string(size() / dp);
}

}  // namespace

TEST_CASE("a prefix has the number and the coordinates of the rank, before every line") {
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};
  const std::string where = "dp=" + std::to_string(mesh.coordinate("dp").value()) +
                            ",tp=" + std::to_string(mesh.coordinate("tp").value());
  const std::string blank = size() > 10 && rank() < 10 ? " " : "";
  const std::string expected = "[" + blank + std::to_string(rank()) + " " + where + "] ";
  CHECK(prefix(mesh) == expected);
  CHECK(prefixed(mesh, "one\ntwo\n") == expected + "one\n" + expected + "two\n");
  CHECK(prefixed(mesh, "") == expected);
  mesh.close();
}

TEST_CASE("one rank prints, or all in the order of their numbers") {
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};
  std::ostringstream out;
  print_once(out, mesh, "hello");
  CHECK(out.str() == (rank() == 0 ? "hello\n" : ""));
  out.str("");
  print_once(out, mesh, "last\n", rankmesh_test::last());
  CHECK(out.str() == (rank() == rankmesh_test::last() ? "last\n" : ""));

  CHECK_CONTAINS(rankmesh_test::thrown_by<UsageError>([&] {
                   print_once(out, mesh, "nobody", mesh.size());
                 }).message(),
                 "print_once: rank " + std::to_string(size()) + " is outside the world of " +
                     std::to_string(size()) + " ranks");
  CHECK_THROWS_AS(print_once(out, mesh, "nobody", Rank{-1}), UsageError);

  out.str("");
  // Rank 1 prints nothing, the others lines of different lengths.
  print_in_order(out, mesh, rank() == 1 ? "" : "line\n" + std::string(rank(), 'x'));
  std::string expected;
  for (int k = 0; k < size(); ++k) {
    if (k == 1) continue;
    const std::string number = std::to_string(k);
    const std::string before = "[" +
                               std::string(std::to_string(size() - 1).size() - number.size(), ' ') +
                               number + " " + mesh.plan().describe(k) + "] ";
    expected += before + "line\n" + (k == 0 ? "" : before + std::string(k, 'x') + "\n");
  }
  CHECK(out.str() == (rank() == 0 ? expected : ""));

  out.str("");
  auto& tp = mesh["tp"];
  print_in_order(out, tp, std::to_string(rank()));
  std::string group;
  for (std::int64_t k = 0; k < tp.size(); ++k)
    group += std::to_string(tp.ranks().at(k).value()) + "\n";
  CHECK(out.str() == (tp.is_first() ? group : ""));
  mesh.close();
}

TEST_CASE("a seed differs over the named dimensions only") {
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};
  auto& world = mesh["world"];
  const auto distinct = [&](std::uint64_t mine) {
    const auto all = world.all_gather(mine);
    return static_cast<std::int64_t>(std::set(all.begin(), all.end()).size());
  };
  CHECK(distinct(seed(mesh, 1234)) == 1);
  CHECK(distinct(seed(mesh, 1234, "dp")) == mesh["dp"].size());
  CHECK(distinct(seed(mesh, 1234, {"tp", "dp"})) == size());
  const auto of_group = mesh["tp"].all_gather(seed(mesh, 1234, {"dp"}));
  CHECK(std::set(of_group.begin(), of_group.end()).size() == 1);
  CHECK(seed(mesh, 7, {"dp", "tp"}) == seed(mesh, 7, {"tp", "dp"}));
  CHECK(seed(mesh, 7, {"dp"}) != seed(mesh, 8, {"dp"}));
  CHECK(seed(mesh, 7, {"dp"}) != seed(mesh, 7, {"tp"}));
  CHECK(seed(mesh, 1234) == 15466301760046950479U);
  CHECK_THROWS_AS(static_cast<void>(seed(mesh, 7, {"pp"})), UnknownName);
  mesh.close();
}

TEST_CASE("parameters come from the first rank of several families") {
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};
  std::vector<std::vector<float>> weights{std::vector<float>(5, static_cast<float>(rank())),
                                          {},
                                          std::vector<float>(2, static_cast<float>(rank()) + 100)};
  broadcast_parameters(mesh, weights, {"dp", "tp"});
  CHECK(weights[0] == std::vector<float>(5, 0));
  CHECK(weights[2] == std::vector<float>(2, 100));
  // Over dp only: from the first member of each group.
  std::vector<int> biases(3, rank());
  broadcast_parameters(mesh, biases, "dp");
  CHECK(biases == std::vector<int>(3, static_cast<int>(mesh["dp"].first_rank().value())));
  CHECK_THROWS_AS(broadcast_parameters(mesh, biases, {"dq"}), UnknownName);
  mesh.close();
}

TEST_CASE("ranks that are in no group of a family take no part") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "pp=" + std::to_string(size()) + " ; embd=ends(pp)"};
  int value = rank();
  broadcast_parameters(mesh, std::span{&value, 1}, {"embd"});
  CHECK(value == (rank() == size() - 1 ? 0 : rank()));

  // The embedding is on both ends, each stage has a layer of its own.
  GlobalNorm norm{mesh, {"pp"}};
  const std::vector<float> layer(4, 1.0F), embedding(3, 2.0F);
  norm.add(layer);
  if (rank() == 0 || rank() == size() - 1) norm.add(embedding, {"embd"});
  CHECK(norm.result() == doctest::Approx(std::sqrt(4.0 * size() + 12)));
  mesh.close();
}

TEST_CASE("the global norm counts replicas once") {
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};
  GlobalNorm norm{mesh, {"tp"}};
  std::vector<double> part(3, static_cast<double>(mesh.coordinate("tp").value() + 1));
  const std::vector<std::vector<float>> replicated{{3}, {4, 0}};
  const std::vector<BFloat16> narrow(2, BFloat16{2});
  const std::vector<std::complex<float>> complex{{1, 2}};
  norm.add(part);
  norm.add(replicated, {"tp"});
  norm.add(narrow, "tp");
  norm.add(complex, {"tp"});
  norm.add(std::vector<std::array<std::array<float, 2>, 3>>{{{{1, 1}, {1, 1}, {1, 1}}}}, {"tp"});
  norm.add_squares(7, {"tp"});
  double expected = 25 + 8 + 5 + 6 + 7;
  for (std::int64_t k = 1; k <= mesh["tp"].size(); ++k)
    expected += 3.0 * static_cast<double>(k * k);
  CHECK(norm.result() == doctest::Approx(std::sqrt(expected)));
  CHECK(norm.result() == 0);  // the sum begins again
  norm.add(std::vector<float>{1e30F});
  CHECK(norm.result() == doctest::Approx(1e30 * std::sqrt(static_cast<double>(mesh["tp"].size()))));
  CHECK_THROWS_AS((GlobalNorm{mesh, {"pp"}}), UnknownName);
  CHECK_THROWS_AS(norm.add(part, {"pp"}), UnknownName);
  mesh.close();
}

TEST_CASE("the global norm ignores replicas over families that it does not sum over") {
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};
  const std::vector<float> bias(4, 1.0F);  // the same on all ranks
  GlobalNorm norm{mesh, {"tp"}};
  for (const FamilyNames& families : {FamilyNames{"dp", "tp"}, FamilyNames{"tp", "dp"},
                                      FamilyNames{"tp"}, FamilyNames{"world"}}) {
    norm.add(bias, families);
    CHECK(norm.result() == doctest::Approx(2));
  }
  norm.add(bias, {"dp"});  // different over tp
  CHECK(norm.result() == doctest::Approx(2 * std::sqrt(static_cast<double>(mesh["tp"].size()))));
  GlobalNorm of_all{mesh, {"world"}};
  of_all.add(bias, {"dp", "tp"});
  CHECK(of_all.result() == doctest::Approx(2));
  GlobalNorm of_both{mesh, {"dp", "tp"}};
  of_both.add(bias, {"world"});
  CHECK(of_both.result() == doctest::Approx(2));
  mesh.close();
}

TEST_CASE("the global norm refuses families that overlap") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};  // tp has at least two ranks, or dp has
  const std::string larger = mesh["tp"].size() > 1 ? "tp" : "dp";
  const auto text = [&](const FamilyNames& families) {
    return rankmesh_test::thrown_by<UsageError>([&] {
             (void)GlobalNorm{mesh, families};
           })
        .message();
  };
  CHECK_CONTAINS(text({"tp", "tp"}), "GlobalNorm: 'tp' has ranks in common");
  CHECK_CONTAINS(text({larger, "world"}), "GlobalNorm: 'world' has ranks in common");
  CHECK_CONTAINS(text({"world", larger}), "GlobalNorm: '" + larger + "' has ranks in common");
  mesh.close();
}

TEST_CASE("a stopwatch knows the least, the mean and the most over a group") {
  Mesh mesh{MPI_COMM_WORLD, two_dimensions()};
  auto& tp = mesh["tp"];
  const TimeSpread spread =
      rankmesh::spread(tp, 1.0 + static_cast<double>(tp.rank_in_group().value()));
  CHECK(spread.least == 1);
  CHECK(spread.most == static_cast<double>(tp.size()));
  CHECK(spread.mean == doctest::Approx((1.0 + static_cast<double>(tp.size())) / 2));
  CHECK(spread.least_at == tp.first_rank());
  CHECK(spread.most_at == tp.last_rank());
  CHECK(to_string(TimeSpread{0.0000012, 0.0015, 2, 3, 0}) ==
        "least 1.20 us (rank 3), mean 1.50 ms, most 2.00 s (rank 0)");

  Stopwatch watch;
  CHECK_THROWS_AS(watch.stop(), UsageError);
  watch.start();
  watch.stop();
  const double first = watch.seconds();
  { const auto lap = watch.lap(); }
  CHECK(watch.laps() == 2);
  CHECK(watch.seconds() >= first);
  const TimeSpread measured = watch.spread(tp);
  CHECK(measured.least <= watch.seconds());
  CHECK(measured.most >= watch.seconds());
  watch.reset();
  CHECK(watch.laps() == 0);
  CHECK(watch.seconds() == 0);
  {
    const auto lap = watch.lap();
    watch.reset();  // the lap goes on
  }
  CHECK(watch.laps() == 1);
  mesh.close();
}
