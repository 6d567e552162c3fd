// SPDX-License-Identifier: BSD-3-Clause
// The memory and the time that a candidate takes. docs/search.md has the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "search/model_shape.hpp"
#include "search/settings.hpp"
#include "search/system.hpp"

namespace rankmesh::search {

/// The memory of one device, in bytes.
struct DeviceMemory {
  double weights = 0, gradients = 0, optimizer = 0;
  double activations = 0;  ///< of all microbatches in flight
  double recomputed = 0;   ///< activations of the layer that is computed again
  double logits = 0;       ///< of the last stage, and its norm
  double gathered = 0;     ///< parameters that ZeRO has gathered
  double communicators = 0, context = 0, reserve = 0;
  std::int64_t stage = 0;  ///< the stage of the device
  [[nodiscard]] double total() const {
    return weights + gradients + optimizer + activations + recomputed + logits + gathered +
           communicators + context + reserve;
  }
  /// The terms with their names.
  [[nodiscard]] std::vector<std::pair<std::string_view, double>> terms() const;
};

/// The time of one step, in seconds, as terms that add up.
struct StepTime {
  double products = 0;                            ///< products of matrices, those of attention too
  double memory = 0;                              ///< what moves through the memory of the device
  double tp = 0, cp = 0, ep = 0, pp = 0, dp = 0;  ///< what communication adds
  double bubble = 0;                              ///< the pipeline fills and drains
  double optimizer = 0;                           ///< the update of the parameters
  [[nodiscard]] double total() const {
    return products + memory + tp + cp + ep + pp + dp + bubble + optimizer;
  }
  [[nodiscard]] std::vector<std::pair<std::string_view, double>> terms() const;
};

enum class Fit : std::uint8_t { fits, tight, does_not_fit };
[[nodiscard]] std::string_view to_string(Fit fit);

/// The layers of a stage.
struct StageShape {
  std::int64_t stage = 0, dense = 0, sparse = 0;
  bool has_embedding = false, has_loss = false;
};

/// Computes both for candidates of one model on one machine. It keeps what several candidates
/// share, so one thread at a time may use it.
class CostModel {
 public:
  /// @param machine  the levels outside a device; bandwidths that it states replace those of
  /// `device`.
  CostModel(const ModelFigures& model, const DeviceFigures& device, const Machine& machine,
            const Software& software, const Margins& margins);

  /// Returns the memory of the fullest device, or of a device of this stage.
  [[nodiscard]] DeviceMemory memory(const MeshSettings& settings) const;
  [[nodiscard]] DeviceMemory memory(const MeshSettings& settings, std::int64_t stage) const;
  [[nodiscard]] StepTime time(const MeshSettings& settings) const;
  [[nodiscard]] Fit judge(const DeviceMemory& memory) const;

  [[nodiscard]] const ModelFigures& model() const { return model_; }
  [[nodiscard]] const ModelShape& shape() const { return shape_; }
  [[nodiscard]] const DeviceFigures& device() const { return device_; }
  [[nodiscard]] const Software& software() const { return software_; }
  [[nodiscard]] const Margins& margins() const { return margins_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  void set_margins(const Margins& margins) { margins_ = margins; }

 private:
  struct LayerTime;
  [[nodiscard]] DeviceMemory memory_of(const MeshSettings& settings, const StageShape& stage,
                                       double communicators) const;
  [[nodiscard]] double flying_of(const MeshSettings& settings, const StageShape& stage) const;
  [[nodiscard]] double kept_by_layer(const MeshSettings& s, const LayerShape& layer,
                                     Recompute recompute) const;
  [[nodiscard]] StageShape stage_of(const StageLayers& layers, std::int64_t stage) const;
  [[nodiscard]] const std::vector<StageShape>& stages_of(const MeshSettings& settings) const;
  [[nodiscard]] double communicators_of(const MeshSettings& settings) const;
  [[nodiscard]] LayerTime layer_time(const MeshSettings& s, const LayerShape& layer) const;
  [[nodiscard]] double products_time(const MeshSettings& s, const LayerShape& layer) const;
  [[nodiscard]] std::int64_t most_units(std::size_t level, std::int64_t size,
                                        std::int64_t stride) const;
  [[nodiscard]] double seconds(Pattern pattern, double bytes, std::int64_t size,
                               std::int64_t stride, double calls,
                               double most_between_nodes = 0) const;
  [[nodiscard]] double exposed_tensor(const MeshSettings& s, const LayerShape& layer,
                                      double whole) const;
  void use(const MeshSettings& settings) const;
  [[nodiscard]] double data_seconds(const MeshSettings& s, double parameters, double experts) const;
  [[nodiscard]] double tokens(const MeshSettings& s) const;
  [[nodiscard]] double rate() const;

  mutable ModelFigures model_;      // its batch and the like are those of the last candidate
  mutable std::int64_t ranks_ = 1;  // of the last candidate
  ModelShape shape_;
  DeviceFigures device_;
  Machine machine_;
  Software software_;
  Margins margins_;
  double peak_ = 0;  // operations per second in the precision of the products
  // With fp8, a product keeps its input in 8 bits (Transformer Engine).
  double saved_of_inputs_ = 0;
  mutable std::map<std::tuple<std::int32_t, std::int32_t, StageKind>, std::vector<StageShape>>
      stages_;
  mutable std::map<std::array<std::int32_t, 5>, double> communicators_;
};

}  // namespace rankmesh::search
