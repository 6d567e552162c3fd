// SPDX-License-Identifier: BSD-3-Clause
// The layers of a model on each pipeline stage.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// Distributes the layers 0 .. layers()-1 of a model over the stages of a pipeline. Without virtual
/// stages, every stage has one run of consecutive layers. With V virtual stages, as in the
/// interleaved schedule of Megatron-LM, every stage has V chunks. The layers are
/// then cut into V * stages() runs of consecutive layers, and chunk v of stage s is the run with
/// the number v * stages() + s. A StageLayers object is immutable.
class RANKMESH_API StageLayers {
 public:
  /// A run of consecutive layers. `count` may be 0.
  struct Run {
    std::int64_t first = 0;  ///< The first layer.
    std::int64_t count = 0;  ///< The number of layers.
    /// Returns the last layer.
    [[nodiscard]] std::int64_t last() const { return first + count - 1; }
    /// Returns whether all fields are equal.
    friend bool operator==(const Run&, const Run&) = default;
  };
  /// The place of a layer. `index` is the number of the layer in its chunk.
  struct Place {
    Coordinate stage = 0;    ///< The stage that has the layer.
    std::int64_t chunk = 0;  ///< The chunk of the stage.
    std::int64_t index = 0;  ///< The number of the layer in its chunk.
    /// Returns whether all fields are equal.
    friend bool operator==(const Place&, const Place&) = default;
  };

  /// Creates chunks of equal size.
  /// @throws UsageError if an argument is less than 1, or if `layers` is not a multiple of stages *
  /// chunks.
  static StageLayers even(std::int64_t layers, std::int64_t stages, std::int64_t chunks = 1);
  /// Creates chunks with the given numbers of layers.
  /// @param counts  the number of layers of each chunk. The list begins with the first chunk of
  /// every stage, followed by the second chunk of every stage, and so on.
  /// @throws UsageError if `counts` is empty, if a count is negative, or if the length of `counts`
  /// is not a multiple of `chunks`.
  static StageLayers given(std::span<const std::int64_t> counts, std::int64_t chunks = 1);

  /// Returns the number of layers.
  [[nodiscard]] std::int64_t layers() const {
    return ends_.empty() ? each_ * stages_ * chunks_ : ends_.back();
  }
  /// Returns the number of pipeline stages.
  [[nodiscard]] std::int64_t stages() const { return stages_; }
  /// Returns the number of chunks of each stage, which is the number of virtual stages.
  [[nodiscard]] std::int64_t chunks() const { return chunks_; }
  /// Returns the layers of a chunk.
  /// @throws UsageError if the stage or the chunk does not exist.
  [[nodiscard]] Run run(Coordinate stage, std::int64_t chunk = 0) const;
  /// Returns the place of a layer.
  /// @throws UsageError if the layer does not exist.
  [[nodiscard]] Place place(std::int64_t layer) const;

 private:
  StageLayers() = default;
  std::int64_t stages_ = 1;
  std::int64_t chunks_ = 1;
  std::int64_t each_ = 0;           // number of layers per chunk, if all chunks are equal
  std::vector<std::int64_t> ends_;  // end of each run, if the chunks differ
};

}  // namespace rankmesh
