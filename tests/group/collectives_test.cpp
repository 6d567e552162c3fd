// SPDX-License-Identifier: BSD-3-Clause
// Every operation of a coordinator against a plain reference, over groups of a mesh, counts and
// chunk sizes.
#include <doctest/doctest.h>

#include <array>
#include <numeric>

#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"
#include "support/reductions.hpp"

using namespace rankmesh;
using rankmesh_test::all_reductions;
using rankmesh_test::reduced;
using rankmesh_test::size;
using rankmesh_test::small_value;

namespace {

template <class T>
std::vector<T> values(Rank r, std::int64_t n) {
  std::vector<T> result;
  for (std::int64_t i = 0; i < n; ++i) result.push_back(static_cast<T>(small_value(r.value(), i)));
  return result;
}

template <class T>
T reduced_at(const RankSet& ranks, std::int64_t i, ReduceOp op) {
  return reduced<T>(op, ranks.size(),
                    [&](std::int64_t k) { return small_value(ranks.at(k).value(), i); });
}

template <class T>
void test_reductions(GroupCoordinator& group, std::int64_t n) {
  const std::int64_t k = group.rank_in_group().value();
  for (const ReduceOp op : all_reductions) {
    CAPTURE(to_string(op));
    std::vector<T> expected;
    for (std::int64_t i = 0; i < n; ++i) expected.push_back(reduced_at<T>(group.ranks(), i, op));

    auto in_place = values<T>(group.rank(), n);
    group.all_reduce(in_place, op);
    CHECK(in_place == expected);

    const auto in = values<T>(group.rank(), n);
    std::vector<T> out(static_cast<std::size_t>(n));
    group.all_reduce(in, out, op);
    CHECK(out == expected);

    const RankInGroup root = group.size() - 1;
    std::vector<T> at_root(static_cast<std::size_t>(n), T{9});
    group.reduce(in, at_root, root, op);
    CHECK(at_root ==
          (group.is_last() ? expected : std::vector<T>(static_cast<std::size_t>(n), T{9})));
    auto mine = in;
    group.reduce(mine, root, op);
    CHECK(mine == (group.is_last() ? expected : in));

    const auto wide = values<T>(group.rank(), n * group.size());
    std::vector<T> block(static_cast<std::size_t>(n));
    group.reduce_scatter(wide, block, op);
    for (std::int64_t i = 0; i < n; ++i)
      CHECK(block[static_cast<std::size_t>(i)] == reduced_at<T>(group.ranks(), k * n + i, op));
  }
}

void test_movement(GroupCoordinator& group, std::int64_t n) {
  using T = std::int32_t;
  const std::int64_t size = group.size();
  const std::int64_t k = group.rank_in_group().value();
  const auto un = static_cast<std::size_t>(n);
  const auto all = static_cast<std::size_t>(n * size);
  std::vector<T> everyone;
  for (const Rank r : group.ranks()) {
    const auto theirs = values<T>(r, n);
    everyone.insert(everyone.end(), theirs.begin(), theirs.end());
  }
  const auto mine = values<T>(group.rank(), n);

  auto sent = mine;
  group.broadcast(sent, size / 2);
  CHECK(sent == values<T>(group.ranks().at(size / 2), n));

  std::vector<T> out(all);
  group.all_gather(mine, out);
  CHECK(out == everyone);
  std::vector<T> in_place(all);
  const std::span<T> own{in_place.data() + k * n, un};
  std::ranges::copy(mine, own.begin());
  group.all_gather(own, in_place);
  CHECK(in_place == everyone);

  std::vector<T> gathered(group.is_first() ? all : 0);
  group.gather(mine, gathered, 0);
  if (group.is_first()) CHECK(gathered == everyone);

  std::vector<T> part(un);
  group.scatter(group.is_first() ? everyone : std::vector<T>{}, part, 0);
  CHECK(part == mine);

  std::vector<T> to_all;
  for (std::int64_t to = 0; to < size; ++to)
    for (std::int64_t i = 0; i < n; ++i)
      to_all.push_back(static_cast<T>(k * 1000 + to * 10 + i % 10));
  std::vector<T> from_all(all);
  group.all_to_all(to_all, from_all);
  for (std::int64_t from = 0; from < size; ++from)
    for (std::int64_t i = 0; i < n; ++i)
      CHECK(from_all[static_cast<std::size_t>(from * n + i)] == from * 1000 + k * 10 + i % 10);

  std::vector<T> received(un);
  group.send_recv(mine, received, next, prev, 5);
  CHECK(received == values<T>(group.prev_rank(), n));
  if (size > 1) {  // a chain
    std::vector<T> passed = values<T>(group.first_rank(), n);
    if (!group.is_first()) {
      std::ranges::fill(passed, 0);
      group.recv(passed, prev);
    }
    if (!group.is_last()) group.send(passed, next);
    CHECK(passed == values<T>(group.first_rank(), n));
  }
  group.barrier();
}

// Meshes of the job's size with groups of different shapes.
std::vector<std::string> meshes() {
  switch (size()) {
    case 4:
      return {"dp=2,tp=2", "tp=4"};
    case 6:
      return {"pp=3,tp=2", "dp=2,tp=3 ; all=dp*tp"};
    case 8:
      return {"pp=2,dp=2,tp=2 | pp=2,ep=4"};
    case 12:
      return {"pp=2,dp=3,tp=2"};
    case 16:
      return {"pp=2,dp=2,tp=4"};
    default:
      return {"tp=auto"};
  }
}

}  // namespace

TEST_CASE("every collective x reduction x type, over all names of a mesh") {
  for (const std::string& text : meshes()) {
    Mesh mesh{MPI_COMM_WORLD, text};
    for (const GroupFamily& family : mesh.plan().families()) {
      GroupCoordinator& group = mesh[family.name()];
      CAPTURE(text);
      CAPTURE(group.name());
      for (const std::int64_t n : {1, 5}) {
        test_reductions<std::int8_t>(group, n);
        test_reductions<std::uint8_t>(group, n);
        test_reductions<std::int16_t>(group, n);
        test_reductions<std::uint16_t>(group, n);
        test_reductions<std::int32_t>(group, n);
        test_reductions<std::uint32_t>(group, n);
        test_reductions<std::int64_t>(group, n);
        test_reductions<std::uint64_t>(group, n);
        test_reductions<float>(group, n);
        test_reductions<double>(group, n);
      }
      for (const std::int64_t n : {0, 1, 5, 1000}) test_movement(group, n);
    }
    mesh.close();
  }
}

TEST_CASE("counts above the limit of MPI are divided, blocking and asynchronous") {
  for (const bool polled : {false, true}) {
    MeshOptions options;
    options.largest_count = 7;
    if (polled) options.deadline = Deadline::Duration{60};
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    for (const std::int64_t n : {0, 1, 6, 7, 8, 14, 29}) {
      CAPTURE(n);
      test_reductions<double>(mesh["tp"], n);
      test_movement(mesh["tp"], n);
    }
    mesh.close();
  }
}

TEST_CASE("std::byte can be sent from any contiguous range") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::array<float, 3> array{1, 2, 3};
  tp.all_reduce(array);
  CHECK(array[2] == 3.0F * static_cast<float>(tp.size()));
  std::vector<float> vector(4, 1.0F);
  tp.all_reduce(std::span{vector}.subspan(1, 2));
  CHECK(vector[0] == 1.0F);
  CHECK(vector[1] == static_cast<float>(tp.size()));
  std::vector<std::byte> bytes(3,
                               std::byte{static_cast<unsigned char>(tp.rank_in_group().value())});
  tp.broadcast(bytes, 0);
  CHECK(bytes[2] == std::byte{0});
  double one = 1;
  tp.all_reduce(std::span{&one, 1});
  CHECK(one == static_cast<double>(tp.size()));
  mesh.close();
}
