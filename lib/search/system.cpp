// SPDX-License-Identifier: BSD-3-Clause
#include "search/system.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"
#include "spec/detail/toml_reader.hpp"

namespace rankmesh::search {
namespace {

// NVIDIA's data sheets: A100 80GB SXM, H100 SXM, H200 SXM, and DGX B200 (an eighth of the node);
// the network is one port per device: HDR (200 Gb/s) with A100, NDR (400 Gb/s) with the others.
const std::array<DeviceFigures, 4>& known_devices() {
  static const std::array<DeviceFigures, 4> devices{
      DeviceFigures{.name = "A100",
                    .flops = 312e12,
                    .flops_fp8 = 0,
                    .memory_bandwidth = 2.039e12,
                    .node_bandwidth = 300e9,
                    .network_bandwidth = 25e9},
      DeviceFigures{.name = "H100"},
      DeviceFigures{.name = "H200", .memory = 141e9, .memory_bandwidth = 4.8e12},
      DeviceFigures{.name = "B200",
                    .memory = 180e9,
                    .flops = 2250e12,
                    .flops_fp8 = 4500e12,
                    .memory_bandwidth = 8e12,
                    .node_bandwidth = 900e9}};
  return devices;
}

struct KnownSoftware {
  std::string_view name, precision;
  StateBytes states;
  bool overlaps, shards;
  double most_gathered, attention;
};

// megatron: Megatron-LM docs/user-guide/features/dist_optimizer.md. deepspeed: as Megatron in fp16;
// in bf16, runtime/bf16_optimizer.py keeps 16-bit gradients beside those of 32 bits. fsdp: torch's
// parameters are in 32 bits, or all in 16 bits (pure).
constexpr std::array<KnownSoftware, 10> known_software{{
    {"megatron", "bf16", {2, 4, 12}, true, false, 1e18, 0.5},
    {"megatron", "fp16", {2, 2, 16}, true, false, 1e18, 0.5},
    {"megatron", "fp8", {2, 4, 12}, true, false, 1e18, 0.5},
    {"megatron", "fp32", {4, 4, 8}, true, false, 1e18, 0.5},
    {"deepspeed", "bf16", {2, 6, 12}, false, false, 1e9, 0.34},
    {"deepspeed", "fp16", {2, 2, 16}, false, false, 1e9, 0.34},
    {"deepspeed", "fp32", {4, 4, 8}, false, false, 1e9, 0.34},
    {"fsdp", "bf16", {4, 4, 8}, true, true, 1e18, 0.34},
    {"fsdp", "fp8", {4, 4, 8}, true, true, 1e18, 0.34},
    {"fsdp", "pure", {2, 2, 4}, true, true, 1e18, 0.34},
}};

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const DeviceFigures& device : known_devices()) names.push_back(device.name);
  return names;
}

DeviceFigures device_figures(std::string_view name) {
  const auto found = std::ranges::find(known_devices(), name, &DeviceFigures::name);
  if (found != known_devices().end()) return *found;
  throw UsageError{fmt::format("the figures of a device '{:.40}' are not known", name),
                   fmt::format("write {}, or a TOML file with the figures of the device",
                               fmt::join(device_names(), ", "))};
}

DeviceFigures parse_device(std::string_view text, std::string_view origin) {
  const toml::table table = detail::parse_toml(text, origin);
  const detail::TomlReader reader{table, origin};
  const std::string base = reader.text("device");
  DeviceFigures device;
  if (base.empty()) {
    device.name = origin;
    device.flops_fp8 = 0;
  } else if (const auto known = std::ranges::find(known_devices(), base, &DeviceFigures::name);
             known != known_devices().end()) {
    device = *known;
  } else {
    reader.refuse(
        reader.line("device"), fmt::format("the figures of a device '{:.40}' are not known", base),
        fmt::format("write {}, or all figures of the device", fmt::join(device_names(), ", ")));
  }
  if (const std::string name = reader.text("name"); !name.empty()) device.name = name;
  const std::vector<std::pair<std::string, double*>> fields{
      {"memory", &device.memory},
      {"flops", &device.flops},
      {"flops_fp8", &device.flops_fp8},
      {"memory_bandwidth", &device.memory_bandwidth},
      {"node_bandwidth", &device.node_bandwidth},
      {"network_bandwidth", &device.network_bandwidth},
      {"node_latency", &device.node_latency},
      {"network_latency", &device.network_latency},
      {"product_efficiency", &device.product_efficiency},
      {"memory_efficiency", &device.memory_efficiency},
      {"node_efficiency", &device.node_efficiency},
      {"network_efficiency", &device.network_efficiency},
      {"product_latency", &device.product_latency}};
  std::vector<std::string> keys{"device", "name", "source", "devices_per_node"};
  for (const auto& [key, field] : fields) keys.push_back(key);
  reader.require_known_keys(keys);
  device.per_node = reader.number("devices_per_node", 1, 1 << 20).value_or(device.per_node);
  for (const auto& [key, field] : fields) {
    const toml::node* node = reader.find(key);
    if (node == nullptr && (!base.empty() || key.find("efficiency") != std::string::npos ||
                            key.find("latency") != std::string::npos || key == "flops_fp8"))
      continue;
    if (node == nullptr)
      reader.refuse(0, fmt::format("the machine has no '{}'", key),
                    fmt::format("write {} = NUMBER, or device = \"H100\" for the figures of a "
                                "known device",
                                key));
    const auto value = node->value<double>();
    constexpr double least = 1e-12, most = 1e24;  // so that no time is infinite
    if (!value || !(*value <= most) || !(*value >= least || (*value == 0 && key == "flops_fp8")))
      reader.refuse(reader.line(key), fmt::format("'{}' is no positive number", key),
                    fmt::format("write {} = 80e9", key));
    if (*value > 1 && key.ends_with("_efficiency"))
      reader.refuse(reader.line(key), fmt::format("'{}' is greater than 1", key),
                    fmt::format("write the part that is reached: {} = 0.75", key));
    *field = *value;
  }
  return device;
}

std::vector<std::string> software_names() { return {"megatron", "deepspeed", "fsdp"}; }

Software software(std::string_view name, std::string_view precision) {
  std::vector<std::string_view> precisions;
  for (const KnownSoftware& known : known_software) {
    if (known.name != name) continue;
    precisions.push_back(known.precision);
    if (known.precision == precision)
      return {.name = std::string{name},
              .precision = std::string{precision},
              .states = known.states,
              .overlaps = known.overlaps,
              .shards_parameters = known.shards,
              .most_gathered = known.most_gathered,
              .attention = known.attention,
              .activation_bytes = precision == "fp32" ? 4 : 2};
  }
  if (precisions.empty())
    throw UsageError{fmt::format("the training program '{:.40}' is not known", name),
                     fmt::format("write {}", fmt::join(software_names(), ", "))};
  throw UsageError{fmt::format("'{:.40}' is no precision of {}", precision, name),
                   fmt::format("write {}", fmt::join(precisions, ", "))};
}

}  // namespace rankmesh::search
