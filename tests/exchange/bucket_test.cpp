// SPDX-License-Identifier: BSD-3-Clause
// Many buffers by few collectives, in an order that does not depend on the rank.
#include "rankmesh/exchange/bucket.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using exchange::Bucket;
using rankmesh_test::rank;
using rankmesh_test::size;

TEST_CASE("buffers of many sizes and types become sums, round after round") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  std::vector<std::vector<float>> gradients;
  for (const std::size_t n : {3, 0, 5, 8, 1, 100, 2, 7}) gradients.emplace_back(n);
  std::vector<std::int32_t> counts(4);
  Bucket bucket{dp, {.bytes = 64, .op = ReduceOp::sum}};
  for (int round = 0; round < 3; ++round) {
    for (std::size_t g = 0; g < gradients.size(); ++g) {
      for (std::size_t i = 0; i < gradients[g].size(); ++i)
        gradients[g][i] = static_cast<float>((rank() + 1) * static_cast<int>(g * 10 + i) + round);
      bucket.add(gradients[g]);
      if (g == 5) {
        std::ranges::fill(counts, rank());
        bucket.add(counts);  // another type: another collective
      }
      mesh.progress();
    }
    // 3+0+5+8 fill one, 1 is followed by one that does not fit, 100, then the integers; 2+7 wait
    // for wait().
    CHECK(bucket.issued() == 4);
    bucket.wait();
    CHECK(bucket.issued() == 0);
    const int ranks = size() * (size() + 1) / 2;
    for (std::size_t g = 0; g < gradients.size(); ++g)
      for (std::size_t i = 0; i < gradients[g].size(); ++i)
        CHECK(gradients[g][i] ==
              static_cast<float>(ranks * static_cast<int>(g * 10 + i) + round * size()));
    CHECK(counts[3] == size() * (size() - 1) / 2);
  }
  bucket.wait();  // without buffers there is no round
  mesh.close();
}

TEST_CASE("a bucket is issued when it is full, or when the next buffer does not fit") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  // The limit is 32 bytes: 8 elements. After each buffer: the collectives that were issued.
  struct Row {
    std::vector<std::size_t> counts;
    std::vector<std::int64_t> issued;
  };
  for (const Row& row : {Row{{8}, {1}}, Row{{7}, {0}}, Row{{4, 4}, {0, 1}},
                         Row{{4, 3, 1}, {0, 0, 1}}, Row{{4, 3, 2}, {0, 0, 1}},
                         Row{{5, 4, 4}, {0, 1, 2}}, Row{{7, 9}, {0, 2}}, Row{{20, 1}, {1, 1}}}) {
    std::vector<std::vector<float>> buffers;
    for (const std::size_t n : row.counts) buffers.emplace_back(n, 1.0F);
    Bucket bucket{dp, {.bytes = 32, .op = ReduceOp::sum}};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      CAPTURE(row.counts[i]);
      CAPTURE(i);
      bucket.add(buffers[i]);
      CHECK(static_cast<std::int64_t>(bucket.issued()) == row.issued[i]);
    }
    bucket.wait();
    for (const auto& buffer : buffers)
      CHECK(buffer == std::vector<float>(buffer.size(), static_cast<float>(size())));
  }
  mesh.close();
}

TEST_CASE("each member gets its part of each buffer, divisible or not, round after round") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  const auto n = static_cast<std::size_t>(size());
  std::vector<std::vector<double>> gradients, mine;
  for (const std::size_t count :
       {std::size_t{3}, std::size_t{0}, std::size_t{1}, 2 * n, 5 * n + 1, 40 * n, std::size_t{7}}) {
    gradients.emplace_back(count);
    mine.emplace_back(static_cast<std::size_t>(Slice{static_cast<std::int64_t>(count), dp}.size()));
  }
  std::vector<double> whole(3);
  Bucket bucket{dp, {.bytes = 256, .op = ReduceOp::sum}};
  for (int round = 0; round < 3; ++round) {
    for (std::size_t g = 0; g < gradients.size(); ++g) {
      for (std::size_t i = 0; i < gradients[g].size(); ++i)
        gradients[g][i] = (rank() + 1) * static_cast<int>(g * 1000 + i) + round;
      const auto before = gradients[g];
      bucket.add(gradients[g], mine[g]);
      CHECK(gradients[g] == before);
    }
    std::ranges::fill(whole, rank());
    const auto issued = bucket.issued();
    bucket.add(whole);
    CHECK(bucket.issued() == issued + 1);  // it cannot be in one collective with a divided buffer
    bucket.wait();
    const int ranks = size() * (size() + 1) / 2;
    for (std::size_t g = 0; g < gradients.size(); ++g) {
      const Slice slice{static_cast<std::int64_t>(gradients[g].size()), dp};
      for (std::size_t i = 0; i < mine[g].size(); ++i)
        CHECK(mine[g][i] ==
              ranks * static_cast<int>(g * 1000 + i + static_cast<std::size_t>(slice.begin())) +
                  round * size());
    }
    CHECK(whole[2] == size() * (size() - 1) / 2);
  }
  std::vector<double> wrong(gradients[0].size() + 1);
  CHECK_THROWS_WITH_AS(bucket.add(gradients[0], wrong),
                       doctest::Contains("this member's part of 3"), UsageError);
  mesh.close();
}

TEST_CASE("averages, and a bucket that is destroyed while its operations are in progress") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  std::vector<double> a{static_cast<double>(rank())}, b{static_cast<double>(2 * rank())};
  {
    Bucket bucket{dp};
    bucket.add(a);
    bucket.add(b);
    bucket.wait();
    CHECK(a[0] == doctest::Approx((size() - 1) / 2.0));
    CHECK(b[0] == doctest::Approx(size() - 1));
    bucket.add(a);
    bucket.add(b);
    bucket.flush();
  }
  CHECK_THROWS_AS((Bucket{dp, {.bytes = 0}}), UsageError);
  mesh.close();
}

TEST_CASE("the members must add the same buffers, in the first round and in later ones") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  std::vector<float> a(3), b(4);
  Bucket other{dp};
  other.add(rank() == 1 ? a : b);
  other.add(rank() == 1 ? b : a);
  CHECK_THROWS_WITH_AS(other.wait(), doctest::Contains("collective 0: buffer 0 of 3 float32"),
                       MismatchError);

  Bucket forms{dp};
  std::vector<float> half(static_cast<std::size_t>(Slice{4, dp}.size()));
  if (rank() == 1)
    forms.add(b, half);
  else
    forms.add(b);
  CHECK_THROWS_WITH_AS(forms.wait(), doctest::Contains("buffer 0 of 4 float32, to be divided"),
                       MismatchError);

  Bucket bucket{dp, {.bytes = 1 << 10}};
  bucket.add(a);
  bucket.wait();
  bucket.add(b);
  CHECK_THROWS_WITH_AS(bucket.wait(), doctest::Contains("than in the first round"), UsageError);
  Bucket two{dp, {.bytes = 16}};
  two.add(b);
  two.add(a);
  two.wait();
  two.add(b);
  CHECK_THROWS_WITH_AS(two.wait(), doctest::Contains("has 1 collectives, the first round had 2"),
                       UsageError);
  mesh.close();
}

TEST_CASE("a bucket that is destroyed before wait() says how many buffers it gives up") {
  std::vector<std::string> warnings;
  MeshOptions options;
  options.log = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning && text.find("Bucket") != std::string_view::npos)
      warnings.emplace_back(text);
  };
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", options};
  std::vector<float> a(3), b(4);
  {
    Bucket bucket{mesh["dp"]};
    bucket.add(a);
    bucket.wait();
    Bucket moved = std::move(bucket);
    // NOLINTNEXTLINE(bugprone-use-after-move): that is the subject
    CHECK_THROWS_WITH_AS(bucket.add(a), doctest::Contains("this Bucket was moved"), UsageError);
    moved.add(a);
    moved.wait();
  }
  CHECK(warnings.empty());
  {
    Bucket bucket{mesh["dp"]};
    bucket.add(a);
    bucket.flush();
    bucket.add(b);
  }
  REQUIRE(warnings.size() == 1);
  CHECK_CONTAINS(warnings[0], "a Bucket over 'dp' is destroyed on rank " + std::to_string(rank()) +
                                  " without wait(): 2 buffers may not hold the results");
  try {
    Bucket bucket{mesh["dp"]};
    bucket.add(a);
    throw std::runtime_error{"the program has another problem"};
  } catch (const std::runtime_error&) {
  }
  CHECK(warnings.size() == 1);
  mesh.close();
}

TEST_CASE("a bucket without its mesh says so") {
  std::optional<Mesh> mesh{std::in_place, MPI_COMM_WORLD, "dp=auto"};
  std::vector<float> a(3), mine(3);
  Bucket bucket{(*mesh)["dp"]};
  bucket.add(a);
  mesh->close();
  mesh.reset();
  const auto refused = [](const std::function<void()>& call) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("Bucket over 'dp': the group is gone"),
                         ClosedError);
  };
  refused([&] { bucket.add(a); });
  refused([&] { bucket.add(a, mine); });
  refused([&] { bucket.flush(); });
  refused([&] { bucket.wait(); });
}

TEST_CASE("a first round inside an NcclGroup is refused, and can be ended after it") {
  MeshOptions options;
  options.devices = DeviceUse::off;
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", options};
  std::vector<float> a(3, 2.0F);
  Bucket bucket{mesh["dp"], {.bytes = 1}};
  NcclGroup together{mesh};
  CHECK_THROWS_WITH_AS(bucket.add(a), doctest::Contains("dp.Bucket inside an NcclGroup"),
                       UsageError);
  together.end();
  bucket.wait();
  CHECK(a == std::vector<float>(3, 2.0F));
  mesh.close();
}
