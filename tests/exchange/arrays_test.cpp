// SPDX-License-Identifier: BSD-3-Clause
// Redistributions, checkpoints and other functions of the model library on arrays that say their
// axes.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/exchange/bucket.hpp"
#include "rankmesh/exchange/checkpoint.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/exchange/stage_exchange.hpp"
#include "rankmesh/exchange/tensor_dict.hpp"
#include "rankmesh/rankmesh.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

/// A part of a matrix with any strides.
struct StridedPart {
  StridedPart(std::vector<std::int64_t> its_lengths, std::vector<std::int64_t> its_strides)
      : lengths{std::move(its_lengths)}, strides{std::move(its_strides)}, cells(1000, -1) {}
  float& operator()(std::int64_t i, std::int64_t j) {
    return cells[static_cast<std::size_t>(i * strides[0] + j * strides[1])];
  }
  std::vector<std::int64_t> lengths, strides;
  std::vector<float> cells;
};

float number_of_part(std::int64_t i, std::int64_t j) { return static_cast<float>(100 * i + j); }

}  // namespace

template <>
struct rankmesh::MemoryOf<StridedPart> {
  template <class Part>
  static auto* data(Part& part) {
    return part.cells.data();
  }
  static ArrayShape shape(const StridedPart& part) { return {part.lengths, part.strides}; }
};

TEST_CASE("arrays with gaps and in any order move, and are saved and loaded") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  const std::int64_t n = size(), me = rank();
  const std::string text =
      "[" + std::to_string(2 * n) + "," + std::to_string(3 * n) + "] f32 @ tp=" + std::to_string(n);
  const auto by_rows = TensorPlacement::parse(text + " : (tp, _)");
  const auto by_columns = TensorPlacement::parse(text + " : (_, tp)");
  exchange::Redistribution move{mesh["world"], plan_transfer(by_rows, by_columns)};
  const auto process = mesh["world"].broadcast(std::int64_t{::getpid()}, 0);
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("rankmesh-arrays-" + std::to_string(process));
  for (const bool is_transposed : {false, true})
    for (const std::int64_t gap : {0, 2}) {
      // Row-major or column-major, with or without gaps.
      StridedPart source{{2, 3 * n},
                         is_transposed ? std::vector{std::int64_t{1}, 2 + gap}
                                       : std::vector{3 * n + gap, std::int64_t{1}}};
      StridedPart target{{2 * n, 3},
                         is_transposed ? std::vector{3 + gap, std::int64_t{1}}
                                       : std::vector{std::int64_t{1}, 2 * n + gap}};
      StridedPart loaded = target;
      for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < 3 * n; ++j) source(i, j) = number_of_part(2 * me + i, j);
      move.start(source, target).wait();
      const std::string name = "step-" + std::to_string(gap) + (is_transposed ? "-t" : "");
      exchange::save_checkpoint(mesh["world"], folder, name, {{"x", by_rows, source}});
      exchange::load_checkpoint(mesh["world"], folder / name, {{"x", by_columns, loaded}});
      for (std::int64_t i = 0; i < 2 * n; ++i)
        for (std::int64_t j = 0; j < 3; ++j) {
          CHECK(target(i, j) == number_of_part(i, 3 * me + j));
          CHECK(loaded(i, j) == number_of_part(i, 3 * me + j));
        }
      // Memory between the elements does not change.
      CHECK(std::ranges::count(target.cells, -1.0F) == 1000 - 6 * n);
    }
  StridedPart whole{{2, 3 * n}, {3 * n, 1}}, other{{3, 2 * n}, {2 * n, 1}};
  CHECK_THROWS_AS(static_cast<void>(move.start(whole, other)), UsageError);
  mesh["world"].barrier();
  if (rank() == 0) std::filesystem::remove_all(folder);
  mesh.close();
}

TEST_CASE("buckets, stages and tensors take arrays that say their axes") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  auto& dp = mesh["dp"];
  StridedPart columns{{2, 3}, {1, 2}}, gaps{{2, 3}, {4, 1}}, rows{{2, 3}, {3, 1}};
  columns(1, 2) = static_cast<float>(rank());
  exchange::Bucket bucket{dp, {.op = ReduceOp::max}};
  bucket.add(columns);
  std::vector<float> flat(6, 1);
  bucket.add(buffer_of(flat));
  bucket.wait();
  CHECK(columns(1, 2) == static_cast<float>(size() - 1));
  CHECK_THROWS_AS(bucket.add(gaps), UsageError);
  exchange::StageExchange stages{dp, {.ring = true}};
  stages.run({exchange::to_next(columns), exchange::from_prev(flat)});
  CHECK(flat[5] == columns(1, 2));
  const auto tensor = exchange::Tensor::refer(rows);
  CHECK(tensor.shape() == std::vector<std::int64_t>{2, 3});
  CHECK_THROWS_AS(exchange::Tensor::refer(columns), UsageError);
  mesh.close();
}
