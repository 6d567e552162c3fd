// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transfer/stages.hpp"

#include <doctest/doctest.h>

#include <random>

#include "rankmesh/base/error.hpp"

using rankmesh::StageLayers;
using Run = StageLayers::Run;
using Place = StageLayers::Place;

TEST_CASE("even layers, with and without virtual stages") {
  // Megatron-LM with 8 layers, 2 stages and 4 model chunks each: stage 0 has the layers 0, 2, 4, 6.
  struct Row {
    std::int64_t layers, stages, chunks, stage, chunk;
    Run run;
  };
  for (const Row& row :
       {Row{8, 2, 4, 0, 3, {6, 1}}, Row{8, 2, 2, 0, 0, {0, 2}}, Row{8, 2, 2, 0, 1, {4, 2}},
        Row{8, 2, 2, 1, 0, {2, 2}}, Row{8, 2, 2, 1, 1, {6, 2}}, Row{126, 1, 1, 0, 0, {0, 126}},
        Row{32, 4, 1, 3, 0, {24, 8}}}) {
    CAPTURE(row.layers);
    CHECK(StageLayers::even(row.layers, row.stages, row.chunks).run(row.stage, row.chunk) ==
          row.run);
  }
  CHECK(StageLayers::even(32, 4).run(3).last() == 31);
}

TEST_CASE("given layers follow the order of the chunks") {
  // 126 layers on 16 stages; the first and the last stage have one layer less.
  std::vector<std::int64_t> counts(16, 8);
  counts.front() = counts.back() = 7;
  const StageLayers layers = StageLayers::given(counts);
  CHECK(layers.layers() == 126);
  CHECK(layers.stages() == 16);
  CHECK(layers.run(0) == Run{0, 7});
  CHECK(layers.run(15) == Run{119, 7});
  CHECK(layers.place(7) == Place{1, 0, 0});
  const std::int64_t virtual_counts[] = {1, 2, 0, 3};  // chunk 0 of stages 0 and 1, then chunk 1
  const StageLayers interleaved = StageLayers::given(virtual_counts, 2);
  CHECK(interleaved.stages() == 2);
  CHECK(interleaved.run(0, 1) == Run{3, 0});
  CHECK(interleaved.run(1, 1) == Run{3, 3});
  CHECK(interleaved.place(3) == Place{1, 1, 0});
}

TEST_CASE("layers that do not divide are refused, and the message has the numbers") {
  const auto refused = [](auto&& make, const char* reason) {
    CHECK_THROWS_WITH_AS((void)make(), doctest::Contains(reason), rankmesh::UsageError);
  };
  refused([] { return StageLayers::even(30, 4); },
          "30 layers cannot be divided by 4 pipeline stages");
  refused([] { return StageLayers::even(32, 4, 3); },
          "the 8 layers of a stage cannot be divided by 3 chunks");
  refused([] { return StageLayers::even(0, 1); }, "the number of layers must be at least 1, got 0");
  refused([] { return StageLayers::even(8, 0); },
          "the number of pipeline stages must be at least 1, got 0");
  refused([] { return StageLayers::given({}); }, "got 0 layer counts");
  const std::int64_t counts[] = {1, -1, 2};
  refused([&] { return StageLayers::given(counts); }, "a chunk must have 0 or more layers, got -1");
  const std::int64_t huge[] = {INT64_MAX, 1};
  refused([&] { return StageLayers::given(huge); }, "the layer counts overflow 64 bits");
  refused([&] { return StageLayers::given(counts, 2); }, "got 3 layer counts for 2 chunks");
  refused([] { return StageLayers::even(8, 2).run(2); },
          "stage 2, chunk 0 is out of range: the pipeline has 2 stages");
  refused([] { return StageLayers::even(8, 2).place(8); },
          "layer 8 is out of range: there are 8 layers");
}

TEST_CASE(
    "random pipelines: every layer is in one run, place inverts run, runs follow one another") {
  std::mt19937 random{5};
  for (int round = 0; round < 300; ++round) {
    const auto below = [&](std::uint32_t end) { return static_cast<std::int64_t>(random() % end); };
    const std::int64_t stages = 1 + below(5), chunks = 1 + below(4);
    std::vector<std::int64_t> counts;
    for (std::int64_t r = 0; r < stages * chunks; ++r) counts.push_back(below(4));
    const StageLayers layers =
        below(2) == 0 ? StageLayers::even(stages * chunks * (1 + below(5)), stages, chunks)
                      : StageLayers::given(counts, chunks);
    std::int64_t next = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        const Run run = layers.run(stage, chunk);
        CHECK(run.first == next);
        for (std::int64_t i = 0; i < run.count; ++i)
          CHECK(layers.place(next++) == Place{stage, chunk, i});
      }
    CHECK(next == layers.layers());
  }
}
