// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transfer/stages.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

void require_positive(std::int64_t number, const char* items) {
  if (number < 1)
    throw UsageError{fmt::format("the number of {} must be at least 1, got {}", items, number),
                     "give a positive number"};
}

}  // namespace

StageLayers StageLayers::even(std::int64_t layers, std::int64_t stages, std::int64_t chunks) {
  require_positive(layers, "layers");
  require_positive(stages, "pipeline stages");
  require_positive(chunks, "chunks per stage");
  if (layers % stages != 0)
    throw UsageError{
        fmt::format("{} layers cannot be divided by {} pipeline stages", layers, stages),
        "use a different number of stages, or give the number of layers of each stage"};
  if (layers / stages % chunks != 0)
    throw UsageError{
        fmt::format("the {} layers of a stage cannot be divided by {} chunks", layers / stages,
                    chunks),
        "use a different number of chunks, or give the number of layers of each chunk"};
  StageLayers result;
  result.stages_ = stages;
  result.chunks_ = chunks;
  result.each_ = layers / stages / chunks;
  return result;
}

StageLayers StageLayers::given(std::span<const std::int64_t> counts, std::int64_t chunks) {
  require_positive(chunks, "chunks per stage");
  const auto runs = std::ssize(counts);
  if (runs == 0 || runs % chunks != 0)
    throw UsageError{fmt::format("got {} layer counts for {} chunks per stage", runs, chunks),
                     "give one layer count per stage and chunk"};
  StageLayers result;
  result.stages_ = runs / chunks;
  result.chunks_ = chunks;
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) {
    if (count < 0)
      throw UsageError{fmt::format("a chunk must have 0 or more layers, got {}", count),
                       "give layer counts from 0 up"};
    if (__builtin_add_overflow(sum, count, &sum))
      throw UsageError{"the layer counts overflow 64 bits", "use smaller layer counts"};
    result.ends_.push_back(sum);
  }
  return result;
}

StageLayers::Run StageLayers::run(Coordinate stage, std::int64_t chunk) const {
  if (stage.value() < 0 || stage.value() >= stages_ || chunk < 0 || chunk >= chunks_)
    throw UsageError{
        fmt::format("stage {}, chunk {} is out of range: the pipeline has {} stages of {} chunks",
                    stage.value(), chunk, stages_, chunks_),
        "stages and chunks are numbered from 0"};
  const std::int64_t run = chunk * stages_ + stage.value();
  if (ends_.empty()) return {run * each_, each_};
  const auto index = static_cast<std::size_t>(run);
  const std::int64_t first = index == 0 ? 0 : ends_[index - 1];
  return {first, ends_[index] - first};
}

StageLayers::Place StageLayers::place(std::int64_t layer) const {
  if (layer < 0 || layer >= layers())
    throw UsageError{fmt::format("layer {} is out of range: there are {} layers", layer, layers()),
                     "layers are numbered from 0"};
  if (ends_.empty()) return {layer / each_ % stages_, layer / each_ / stages_, layer % each_};
  const std::int64_t run = std::ranges::upper_bound(ends_, layer) - ends_.begin();
  const std::int64_t first = run == 0 ? 0 : ends_[static_cast<std::size_t>(run) - 1];
  return {run % stages_, run / stages_, layer - first};
}

}  // namespace rankmesh
