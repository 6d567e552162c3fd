// SPDX-License-Identifier: BSD-3-Clause
// Replicas that have drifted apart are named.
#include "rankmesh/helpers/check_equal.hpp"

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

TEST_CASE("equal replicas pass, with any values") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  check_equal(mesh, std::vector<float>{1, nan, 3}, {"dp"});
  check_equal(mesh, std::vector<std::vector<double>>{{1, 2}, {}, {3}}, "dp");
  check_equal(mesh, std::vector<int>{}, {"dp"});
  CHECK_THROWS_AS(check_equal(mesh, std::vector<int>{}, {"tp"}), UnknownName);
  // Different values on different ranks are right where no family has both.
  check_equal(mesh, std::vector<int>{rank()}, {});
  mesh.close();
}

TEST_CASE("an outlier is named, with its coordinates and the first element that differs") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  std::vector<float> values(64, 0.5F);
  if (rank() == last()) values[17] = values[18] = 0.25F;
  const auto error =
      thrown_by<MismatchError>([&] { check_equal(mesh, values, {"dp"}, "the weights"); });
  const std::string number = std::to_string(last());
  CHECK(error.message() == "the weights differ between replicas in dp: rank " + number +
                               " (dp=" + number +
                               "): element 17 is 0.25 instead of 0.5, and 2 of 64 elements differ; "
                               "the values of " +
                               number + " of " + std::to_string(size()) +
                               " members are right; the first of these members is rank 0 (dp=0)");
  CHECK_CONTAINS(error.hint(), "broadcast_parameters()");

  // The first member may be the outlier.
  std::vector<std::int8_t> small(4, -1);
  if (rank() == 0) small[3] = 5;
  const auto of_first = thrown_by<MismatchError>([&] { check_equal(mesh, small, {"dp"}); });
  CHECK_CONTAINS(
      of_first.message(),
      "the values differ between replicas in dp: rank 0 (dp=0): element 3 is 5 instead of -1");
  CHECK_CONTAINS(of_first.message(), "the first of these members is rank 1 (dp=1)");
  mesh.close();
}

TEST_CASE("with as many members of each kind, nobody is right") {
  NEEDS_MULTIPLE_OF(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const std::vector<int> values{1, rank() % 2};
  const auto text = thrown_by<MismatchError>([&] { check_equal(mesh, values, {"dp"}); }).message();
  CHECK_CONTAINS(text, "rank 1 (dp=1): element 1 is 1 instead of 0, and 1 of 2 elements differ");
  CHECK_CONTAINS(text, "; compared with rank 0 (dp=0): there is no majority, so it is not known");
  CHECK(!rankmesh_test::has_part(text, "members are right"));
  mesh.close();
}

TEST_CASE("the buffer of a list, the number of an array, and different sizes") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const auto text = [&](const auto& values) {
    return thrown_by<MismatchError>([&] { check_equal(mesh, values, {"dp"}); }).message();
  };
  std::vector<std::vector<float>> layers{{1}, {2, 2}, {3}, {4}};
  if (rank() == last()) layers[1][1] = layers[3][0] = 9;
  CHECK_CONTAINS(text(layers), "in dp: buffer 1: rank " + std::to_string(last()));
  CHECK_CONTAINS(text(layers), "element 1 is 9 instead of 2, and 1 of 2 elements differ");
  CHECK_CONTAINS(text(layers), "; 1 other buffers differ");

  std::vector<std::array<int, 3>> rows(2);
  if (rank() == last()) rows[1][2] = 7;
  CHECK_CONTAINS(text(rows), "element 1 (int32 2) is 7 instead of 0, and 1 of 2 elements differ");

  CHECK_CONTAINS(text(std::vector<int>(rank() == last() ? 3 : 5)), ": 3 elements instead of 5");
  CHECK_CONTAINS(text(std::vector<std::vector<int>>(rank() == last() ? 3 : 5)),
                 ": 3 buffers instead of 5");
  CHECK_CONTAINS(text(std::vector<double>{rank() == last() ? -0.0 : 0.0}),
                 "element 0 is -0 instead of 0");
  mesh.close();
}

TEST_CASE("buffers whose type is known at run time, and buffers of different types") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const std::vector<float> floats(8);
  const std::vector<double> doubles(8);
  const ConstBuffer same = buffer_of(floats).as_input();
  CHECK_NOTHROW(check_equal(mesh, std::vector<ConstBuffer>(3, same), {"dp"}));
  const ConstBuffer mine = rank() == last() ? buffer_of(doubles).as_input() : same;
  const auto text = thrown_by<MismatchError>([&] { check_equal(mesh, mine, {"dp"}); }).message();
  CHECK_CONTAINS(text, "): 8 x float64 instead of 8 x float32");
  ConstBuffer on_device = same;
  on_device.kind = MemoryKind::device;
  CHECK_THROWS_AS(check_equal(mesh, on_device, {"dp"}), UsageError);
  mesh.close();
}

TEST_CASE("a rank that fails in one family still takes part in the next") {
  NEEDS_MULTIPLE_OF(4);
  Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=" + std::to_string(size() / 2)};
  std::vector<int> values{rank() == 1 ? 5 : 3};
  std::string text;
  try {
    check_equal(mesh, values, {"dp", "tp"});
  } catch (const MismatchError& error) {
    text = error.message();
  }
  // Rank 1 differs in its groups of both families.
  CHECK(rankmesh_test::has_part(text, "in dp: ") == (rank() % (size() / 2) == 1));
  CHECK(rankmesh_test::has_part(text, "in tp: ") == (rank() < size() / 2));
  mesh["world"].barrier();
  mesh.close();
}

TEST_CASE("at most eight outliers are listed") {
  NEEDS_RANKS(12);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const auto error =
      thrown_by<MismatchError>([&] { check_equal(mesh, std::vector<int>{rank()}, {"dp"}); });
  CHECK_CONTAINS(error.message(), "; " + std::to_string(size() - 9) + " other ranks differ");
  mesh.close();
}
