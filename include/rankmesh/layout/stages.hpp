// Which layers of a model each pipeline stage holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// The layers 0 .. layers()-1 over a pipeline. Without virtual stages every stage holds one run of
/// layers. With V virtual stages (Megatron-LM's interleaved schedule) a stage holds V chunks, and
/// the layers run through all stages V times: chunk v of stage s is run v * stages + s.
class RANKMESH_API StageLayers {
 public:
  /// A run of layers; `count` may be 0.
  struct Run {
    std::int64_t first = 0;
    std::int64_t count = 0;
    [[nodiscard]] std::int64_t last() const { return first + count - 1; }
    friend bool operator==(const Run&, const Run&) = default;
  };
  /// Where a layer is: `index` counts within its chunk.
  struct Place {
    Coordinate stage = 0;
    std::int64_t chunk = 0;
    std::int64_t index = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

  /// Equal chunks. @throws UsageError where a number is below 1 or the layers do not divide by
  /// stages x chunks.
  static StageLayers even(std::int64_t layers, std::int64_t stages, std::int64_t chunks = 1);
  /// The given numbers of layers, in the order of the layers: all stages of the first chunk, then
  /// of the next.
  /// @throws UsageError where there is none, one is negative, or their number does not divide by
  /// `chunks`.
  static StageLayers given(std::span<const std::int64_t> counts, std::int64_t chunks = 1);

  [[nodiscard]] std::int64_t layers() const {
    return ends_.empty() ? each_ * stages_ * chunks_ : ends_.back();
  }
  [[nodiscard]] std::int64_t stages() const { return stages_; }
  /// Chunks of each stage: the virtual stages.
  [[nodiscard]] std::int64_t chunks() const { return chunks_; }
  /// @throws UsageError where there is no such stage or chunk.
  [[nodiscard]] Run run(Coordinate stage, std::int64_t chunk = 0) const;
  /// @throws UsageError where there is no such layer.
  [[nodiscard]] Place place(std::int64_t layer) const;

 private:
  StageLayers() = default;
  std::int64_t stages_ = 1;
  std::int64_t chunks_ = 1;
  std::int64_t each_ = 0;           // layers of every chunk, where they are equal
  std::vector<std::int64_t> ends_;  // else the layers up to and with each run
};

}  // namespace rankmesh
