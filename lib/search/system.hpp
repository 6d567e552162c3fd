// SPDX-License-Identifier: BSD-3-Clause
// What a search assumes about the devices and the training program. docs/search.md has the sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/machine/machine.hpp"
#include "search/model_shape.hpp"

namespace rankmesh::search {

/// The figures of a device and of its connections, without losses.
struct DeviceFigures {
  std::string name = "H100";
  std::int64_t per_node = 8;          ///< devices of a node
  double memory = 80e9;               ///< bytes
  double flops = 989.4e12;            ///< per second, of products in 16 bits
  double flops_fp8 = 1978.9e12;       ///< per second, of products in 8 bits; 0: none
  double memory_bandwidth = 3.35e12;  ///< bytes per second
  double node_bandwidth = 450e9;      ///< bytes per second that a device sends inside its node
  double network_bandwidth = 50e9;    ///< bytes per second that a device sends out of its node
  double node_latency = 10e-6;        ///< seconds of a collective inside a node
  double network_latency = 20e-6;     ///< seconds of a collective between nodes
  double product_efficiency = 0.75;   ///< the part of `flops` that large products reach
  double memory_efficiency = 0.8;
  double node_efficiency = 0.65;
  double network_efficiency = 0.9;
  double product_latency = 2.5e-6;  ///< seconds that each product takes whatever its size
};

/// The names of the nodes whose figures are known: A100, H100, H200, B200.
[[nodiscard]] std::vector<std::string> device_names();
/// Reads a name, or the text of a TOML file that may begin from a name.
/// @throws SpecError if neither is known.
[[nodiscard]] DeviceFigures device_figures(std::string_view name);
[[nodiscard]] DeviceFigures parse_device(std::string_view text, std::string_view origin);

/// The bytes of a parameter and its training state.
struct StateBytes {
  double weight = 2, gradient = 4, optimizer = 12;
};

/// A training program.
struct Software {
  std::string name = "megatron";
  std::string precision = "bf16";
  StateBytes states{};
  bool has_flash_attention = true;    ///< the scores of attention are never in memory
  bool overlaps = true;               ///< messages of dp and pp run while the device computes
  bool shards_parameters = false;     ///< FSDP: ZeRO-3, which gathers the parameters of a layer
  double most_gathered = 1e18;        ///< parameters that ZeRO-3 gathers at most
  double attention = 0.5;             ///< the part of the device's FLOP/s that attention reaches
  std::int64_t activation_bytes = 2;  ///< of an element
  double logit_bytes = 10;            ///< 16 bits, and 32 bits with their gradient
  bool accumulates = false;           ///< gradients are whole until the last microbatch of a step
  Keeping keeping{};
};
[[nodiscard]] std::vector<std::string> software_names();
/// @throws UsageError if the name or the precision is unknown.
[[nodiscard]] Software software(std::string_view name, std::string_view precision);

/// What a device holds beside the tensors, and how good the formulas are. Calibration changes the
/// first two.
struct Margins {
  double efficiency = 1;            ///< of the computation, relative to the figures of the device
  double reserve = 0;               ///< bytes that are missing in the formulas
  double context = 1.6e9;           ///< bytes of the context of CUDA and its libraries
  double per_communicator = 0.6e9;  ///< bytes of a communicator of NCCL
  double formula_error = 0.10;      ///< a device is full if this part more would not fit. Of the
                                    ///< published rows that ran, 20 of 120 are tight; with 0.2,
                                    ///< more than a fifth would be
};

}  // namespace rankmesh::search
