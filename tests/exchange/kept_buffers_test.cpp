// SPDX-License-Identifier: BSD-3-Clause
// Tensors in the memory of several ranks: arrays with gaps, and sharded buffers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/exchange/kept_tensors.hpp"
#include "rankmesh/exchange/sharded_buffer.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

TEST_CASE("arrays with gaps are kept, and restored in another type") {
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const auto place = TensorPlacement::parse(fmt::format("[5,3] f64 @ dp={} : (_, _)", size()));
  std::vector<double> matrix(5 * 4, -1);
  for (int i = 0; i < 15; ++i) matrix[static_cast<std::size_t>(i / 3 * 4 + i % 3)] = i + 0.5;
  exchange::KeptTensors kept;
  kept.keep(mesh["dp"], 0, {{"x", place, {matrix, {4, 1}}}});
  std::vector<float> restored(5 * 6, -1);
  kept.restore(mesh["dp"], 0, {{"x", place.as(DataType::float32), {restored, {6, 2}}}});
  for (int i = 0; i < 15; ++i)
    CHECK(restored[static_cast<std::size_t>(i / 3 * 6 + i % 3 * 2)] ==
          static_cast<float>(i) + 0.5F);
  CHECK(restored[1] == -1);
  mesh.close();
}

TEST_CASE("a sharded buffer is kept, and restored on fewer members") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  const std::vector<std::int64_t> sizes{5, 3, 0, 40, 1, 7, 2, 2};
  const auto values_of = [&](std::int64_t tensor) {
    std::vector<float> values(static_cast<std::size_t>(sizes[static_cast<std::size_t>(tensor)]));
    std::iota(values.begin(), values.end(), 100.0F * static_cast<float>(tensor));
    return values;
  };
  std::vector<Rank> left;
  for (int r = 0; r < size(); ++r)
    if (r != size() / 2) left.emplace_back(r);
  for (const bool keep_whole : {false, true}) {
    exchange::KeptTensors kept;
    exchange::ShardedBuffer<float> weights{
        mesh["dp"], sizes, {.bytes = 40, .keep_whole = keep_whole}};
    auto means = weights.like<double>();
    for (std::int64_t t = 0; t < weights.tensors(); ++t) weights.load(t, values_of(t));
    std::vector<exchange::SavedTensor> saved = weights.saved("weights");
    std::ranges::copy(means.saved("means"), std::back_inserter(saved));
    std::int64_t own = 0;
    for (std::int64_t t = 0; t < weights.tensors(); ++t)
      own += saved[static_cast<std::size_t>(t)].place.local_count(Rank{rank()});
    mesh["dp"].all_reduce(own);
    CHECK(own == std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
    kept.keep(mesh["dp"], 3, saved);
    if (rank() != size() / 2) {
      const auto group = mesh.new_group(left);
      exchange::ShardedBuffer<float> after{*group, sizes, {.bytes = 60, .keep_whole = !keep_whole}};
      auto means_after = after.like<double>();
      for (std::int64_t b = 0; b < means_after.buckets(); ++b)
        std::ranges::fill(means_after.mine(b), 1.0);
      std::vector<exchange::LoadedTensor> loaded = after.loaded("weights");
      std::ranges::copy(means_after.loaded("means"), std::back_inserter(loaded));
      kept.restore(*group, 3, loaded);
      after.changed();
      means_after.changed();
      for (std::int64_t t = 0; t < after.tensors(); ++t) {
        const auto whole = after.gather(t);
        CHECK(std::vector<float>(whole.begin(), whole.end()) == values_of(t));
        CHECK(std::ranges::count(means_after.gather(t), 0.0) == std::ssize(whole));
        after.release(t);
        means_after.release(t);
      }
      mesh.close(group);
    }
  }
  mesh.close();
}
