// SPDX-License-Identifier: BSD-3-Clause
// One candidate of a search: a mesh, and how a training program uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/transfer/stages.hpp"

namespace rankmesh::search {

/// What the backward pass computes again.
enum class Recompute : std::uint8_t { none, selective, full };
/// How the layers are divided into stages: all chunks are equal; the embedding and the loss count
/// as layers; or chunks differ by one layer, counted in the same way.
enum class StageKind : std::uint8_t { even, counted, uneven };

[[nodiscard]] std::string_view to_string(Recompute recompute);
[[nodiscard]] std::string_view to_string(StageKind kind);

/// A candidate. The sizes are those of the dimensions.
struct MeshSettings {
  std::int32_t pp = 1, dp = 1, cp = 1, tp = 1, ep = 1;
  std::int32_t virtual_stages = 1;  ///< v
  std::int32_t micro_batch = 1;     ///< sequences of a microbatch
  std::int32_t microbatches = 1;    ///< per pipeline and step
  std::int8_t zero = 1;             ///< ZeRO stage
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
  StageKind stages = StageKind::even;

  [[nodiscard]] std::int64_t ranks() const { return std::int64_t{1} * pp * dp * cp * tp; }
  /// Returns the mesh, which `show`, `check`, `plan`, `emit` and a program accept.
  [[nodiscard]] std::string mesh() const;
  friend bool operator==(const MeshSettings&, const MeshSettings&) = default;
};

/// Returns the layers of each stage and chunk. With chunks that differ, the ends have the fewest.
[[nodiscard]] StageLayers stage_layers(std::int64_t layers, const MeshSettings& settings);

/// Returns the number of layers of each chunk, in the order of StageLayers::given().
[[nodiscard]] std::vector<std::int64_t> chunk_layers(std::int64_t layers,
                                                     const MeshSettings& settings);

/// What a user measured of a step.
struct Measured {
  std::optional<double> seconds;  ///< of one step
  std::optional<double> bytes;    ///< of the fullest device
};

/// MeshSettings, and perhaps what was measured with them.
struct SettingsRow {
  MeshSettings settings;
  Measured measured;
};

/// Returns the document of a candidate as TOML: a mesh file with the settings in a table.
[[nodiscard]] std::string to_toml(const MeshSettings& settings, std::int64_t layers);
/// Reads such a document, in TOML or JSON. Settings that it leaves out are those of
/// settings_of_mesh().
/// @throws SpecError with the reason.
[[nodiscard]] SettingsRow parse_settings(std::string_view text, std::string_view origin);
/// Reads the sizes of a mesh: pp, dp, cp, tp and ep, each at most once per view.
/// @throws SpecError if the mesh has another dimension.
[[nodiscard]] MeshSettings settings_of_mesh(std::string_view mesh);
/// Returns whether the ranks of a mesh are in the order for which a search estimates times, which
/// is that of Megatron-LM: tp varies fastest, then cp, dp and pp.
[[nodiscard]] bool has_search_order(std::string_view mesh);

}  // namespace rankmesh::search
