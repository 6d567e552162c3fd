// SPDX-License-Identifier: BSD-3-Clause
// Collectives on symmetric memory, compared with those of MPI on an equal group.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "group/shared_cases.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"

using namespace shared_cases;

namespace {

template <class T>
void compare_symmetric(GroupCoordinator& ours, GroupCoordinator& by_mpi, const Case& c,
                       unsigned seed, SymmetricSpan<T> a, SymmetricSpan<T> b) {
  CAPTURE(to_string(c.operation));
  CAPTURE(c.count);
  CAPTURE(c.in_place);
  const auto all = static_cast<std::size_t>(c.count * ours.size());
  fill(std::span<T>{a}, seed);
  fill(std::span<T>{b}, seed + 1);
  std::vector<T> expected_a{a.begin(), a.end()};
  std::vector<T> expected_b{b.begin(), b.end()};
  // Every member uses another part of it.
  const auto offset = static_cast<std::size_t>(rank()) * 3;
  carry_out(by_mpi, c, std::span{expected_a}.subspan(offset, all),
            std::span{expected_b}.subspan(offset, all));
  carry_out(ours, c, a.subspan(offset, all), b.subspan(offset, all));
  CHECK(std::memcmp(a.data(), expected_a.data(), a.size() * sizeof(T)) == 0);
  CHECK(std::memcmp(b.data(), expected_b.data(), b.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("symmetric memory: any part of it, used by groups that are listed and by others") {
  Mesh shared{MPI_COMM_WORLD, layout()};
  Mesh plain{MPI_COMM_WORLD, layout(), routed("*.*:host=mpi")};
  const auto count = static_cast<std::size_t>(3 * size() + 20011 * 1 + 1001 * size());
  const auto a = shared.allocate_symmetric<float>(count, {"tp", "all"});
  const auto b = shared.allocate_symmetric<float>(count, {"tp", "all"});
  const auto c16 = shared.allocate_symmetric<std::int16_t>(count, {"all"});
  const auto d16 = shared.allocate_symmetric<std::int16_t>(count, {"all"});
  CHECK(a.size() == count);
  CHECK(a[0] == 0.0F);
  CHECK(b.data() != a.data());
  const std::span<float> ordinary = a;
  CHECK(ordinary.size() == count);
  CHECK_THROWS_AS((void)a.subspan(count, 1), UsageError);
  std::mt19937 same{8};
  for (const std::string& name : names(shared)) {
    CAPTURE(name);
    for (int i = 0; i < (size() > 8 ? 8 : size() > 4 ? 20 : 40); ++i) {
      Case c = random_case(same, shared[name].size(), false);
      if (i % 8 == 0 &&
          (c.operation == Operation::all_reduce || c.operation == Operation::broadcast))
        c.count = 20011;
      if (c.count * shared[name].size() > static_cast<std::int64_t>(count) - 3 * size())
        c.count = 1;
      const auto seed = static_cast<unsigned>(rank() * 11 + i);
      if (i % 3 == 0 && (c.operation != Operation::all_reduce || c.op != ReduceOp::prod))
        compare_symmetric(shared[name], plain[name], c, seed, c16, d16);
      else
        compare_symmetric(shared[name], plain[name], c, seed, a, b);
    }
  }
  plain.close();
  shared.close();
}

TEST_CASE("the root may change symmetric memory once its broadcast returns, others are slow") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  const auto values = mesh.allocate_symmetric<std::int32_t>(5000, {"tp"});
  for (int round = 1; round <= 3; ++round) {
    if (rank() == 0)
      std::ranges::fill(values, round);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds{30});
    mesh["tp"].broadcast(values, 0);
    if (rank() == 0) std::ranges::fill(values, -round);
    if (rank() != 0) CHECK(std::ranges::count(values, round) == 5000);
  }
  mesh.close();
}

TEST_CASE("all_to_all in place in symmetric memory") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  constexpr std::int32_t block = 5000;
  const auto values =
      mesh.allocate_symmetric<std::int32_t>(static_cast<std::size_t>(block * size()), {"tp"});
  for (int round = 0; round < 3; ++round) {
    for (std::int32_t i = 0; i < block * size(); ++i)
      values[static_cast<std::size_t>(i)] = 1000 * rank() + i / block;
    mesh["tp"].barrier();
    mesh["tp"].all_to_all(values, values);
    std::int64_t wrong = 0;
    for (std::int32_t i = 0; i < block * size(); ++i)
      wrong += values[static_cast<std::size_t>(i)] == 1000 * (i / block) + rank() ? 0 : 1;
    CHECK(wrong == 0);
  }
  mesh.close();
}

TEST_CASE(
    "symmetric memory of a mesh is ordinary memory to another that numbers ranks differently") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &reversed);
  Mesh other{reversed, "tp=auto", routed("*.*:host=shm")};
  constexpr std::int32_t block = 2000;
  const auto out =
      mesh.allocate_symmetric<std::int32_t>(static_cast<std::size_t>(block * size()), {"tp"});
  const auto self = static_cast<std::int32_t>(other.rank().value());
  other["tp"].all_gather(std::vector<std::int32_t>(block, self + 1), out);
  std::int64_t wrong = 0;
  for (std::int32_t i = 0; i < block * size(); ++i)
    wrong += out[static_cast<std::size_t>(i)] == i / block + 1 ? 0 : 1;
  CHECK(wrong == 0);
  other.close();
  mesh.close();
  MPI_Comm_free(&reversed);
}

TEST_CASE("invalid uses of symmetric memory throw") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  CHECK_THROWS_AS((void)mesh.allocate_symmetric<float>(4, {"dp"}), UnknownName);
  if (size() > 1) {
    CHECK_THROWS_WITH_AS((void)mesh.allocate_symmetric<float>(rank() == 0 ? 4 : 5, {"tp"}),
                         doctest::Contains("bytes of symmetric memory"), MismatchError);
  }
  CHECK_THROWS_AS((void)mesh.allocate_symmetric<double>(std::size_t{1} << 60, {"tp"}), UsageError);
  auto span = mesh.allocate_symmetric<float>(4, {"tp"});
  (void)mesh.allocate_symmetric<float>(0, {});
  mesh["tp"].all_reduce(span);
  Mesh other{MPI_COMM_WORLD, "tp=auto"};
  std::ranges::fill(span, 1.0F);
  other["tp"].all_reduce(span);  // for another mesh it is ordinary memory
  CHECK(span[3] == static_cast<float>(size()));
  mesh.close();
  CHECK_THROWS_WITH_AS(other["tp"].all_reduce(span),
                       doctest::Contains("symmetric memory of a closed mesh"), ClosedError);
  auto& tp = other["tp"];  // a refused message is not counted, so the close succeeds
  CHECK_THROWS_AS(tp.send(span, tp.rank_in_group()), ClosedError);
  CHECK_THROWS_AS((void)tp.send_async(span, tp.rank_in_group()), ClosedError);
  CHECK_THROWS_AS((void)mesh.allocate_symmetric<float>(4, {"tp"}), ClosedError);
  other.close();
}

TEST_CASE("blocks along an axis of symmetric memory") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  auto& tp = mesh["tp"];
  const std::int64_t rows = 64, columns = 32;  // of a block: 8 KiB of float
  const auto block = static_cast<std::size_t>(rows * columns);
  const auto n = static_cast<std::size_t>(size());
  const auto part = mesh.allocate_symmetric<float>(block, {"tp"});
  const auto whole = mesh.allocate_symmetric<float>(block * n, {"tp"});
  const Axis axis{{rows, columns}, 1};
  // Element (row, column) of the whole array.
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return static_cast<float>((row * 7 + column * 3) % 101);
  };
  const auto width = columns * size();
  const auto is_part = [&](std::span<const float> values, float times) {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        if (values[static_cast<std::size_t>(row * columns + column)] !=
            times * at(row, rank() * columns + column))
          return false;
    return true;
  };
  const auto is_whole = [&](std::span<const float> values) {
    for (std::int64_t i = 0; i < rows * width; ++i)
      if (values[static_cast<std::size_t>(i)] != at(i / width, i % width)) return false;
    return true;
  };
  const auto fill_part = [&] {
    for (std::int64_t i = 0; i < rows * columns; ++i)
      part[static_cast<std::size_t>(i)] = at(i / columns, rank() * columns + i % columns);
  };
  const auto fill_whole = [&] {
    for (std::int64_t i = 0; i < rows * width; ++i)
      whole[static_cast<std::size_t>(i)] = at(i / width, i % width);
  };

  fill_part();
  tp.all_gather(part, whole, axis);
  CHECK(is_whole(whole));
  std::ranges::fill(whole, 0.0F);
  tp.all_gather_async(part, whole, axis).wait();
  CHECK(is_whole(whole));
  tp.reduce_scatter(whole, part, axis);
  CHECK(is_part(part, static_cast<float>(size())));

  fill_part();
  std::ranges::fill(whole, 0.0F);
  const std::int64_t root = size() / 2;
  tp.gather(part, whole, axis, root);
  if (rank() == root) CHECK(is_whole(whole));
  fill_whole();
  std::ranges::fill(part, 0.0F);
  tp.scatter(whole, part, axis, root);
  CHECK(is_part(part, 1.0F));
  mesh.close();
}
