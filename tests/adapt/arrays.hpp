// SPDX-License-Identifier: BSD-3-Clause
// What every adapter is tested with.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

namespace rankmesh_test {

/// The number of element (i, j) of a whole matrix.
inline float number(std::int64_t i, std::int64_t j) { return static_cast<float>(100 * i + j); }

/// Sums an array in place, in a bucket and asynchronously. `at` returns a reference to its element
/// (i, j).
template <class Array, class At>
void check_sums(Array&& array, const At& at, std::int64_t rows, std::int64_t columns) {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  float factor = 1;
  const auto check = [&] {
    factor *= static_cast<float>(size());
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) CHECK(at(i, j) == factor * number(i, j));
  };
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) at(i, j) = number(i, j);
  dp.all_reduce(array);
  check();
  dp.all_reduce_async(array).wait();
  check();
  rankmesh::exchange::Bucket bucket{dp, {.op = rankmesh::ReduceOp::sum}};
  bucket.add(array);
  bucket.wait();
  check();
  dp.broadcast(array, 0);
  mesh.close();
}

/// Gathers blocks of `rows` x `columns` elements along both axes.
/// @param make  make(rows, columns) returns an array.
/// @param at    at(array, i, j) returns a reference to an element.
template <class Make, class At>
void check_blocks(const Make& make, const At& at) {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  const std::int64_t me = rank(), n = size();
  for (const std::int64_t axis : {0, 1}) {
    auto block = make(2, 3);
    auto whole = make(axis == 0 ? 2 * n : 2, axis == 1 ? 3 * n : 3);
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 3; ++j)
        at(block, i, j) = axis == 0 ? number(2 * me + i, j) : number(i, 3 * me + j);
    dp.all_gather(block, whole, rankmesh::Axis{{2, 3}, axis});
    for (std::int64_t i = 0; i < (axis == 0 ? 2 * n : 2); ++i)
      for (std::int64_t j = 0; j < (axis == 1 ? 3 * n : 3); ++j)
        CHECK(at(whole, i, j) == number(i, j));
  }
  mesh.close();
}

/// Moves the rows of a matrix, one per rank and with whatever gaps and order `source` has, to
/// columns in `target`.
/// @param source_at, target_at  Return references to the element (i, j) of this rank's part.
template <class Source, class SourceAt, class Target, class TargetAt>
void check_move(Source&& source, const SourceAt& source_at, Target&& target,
                const TargetAt& target_at) {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const std::string ranks = std::to_string(size()),
                    both = "[" + ranks + "," + ranks + "] f32 @ tp=" + ranks;
  const auto from = rankmesh::TensorPlacement::parse(both + " : (tp, _)");
  const auto to = rankmesh::TensorPlacement::parse(both + " : (_, tp)");
  for (int j = 0; j < size(); ++j) source_at(0, j) = number(rank(), j);
  rankmesh::exchange::Redistribution move{mesh["world"], rankmesh::plan_transfer(from, to)};
  move.start(source, target).wait();
  for (int i = 0; i < size(); ++i) CHECK(target_at(i, 0) == number(i, rank()));
  mesh.close();
}

}  // namespace rankmesh_test
