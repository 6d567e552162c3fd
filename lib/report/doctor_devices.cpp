// SPDX-License-Identifier: BSD-3-Clause
// Rules of doctor about devices.
#include <algorithm>

#include <fmt/format.h>

#include "detail/doctor.hpp"

namespace rankmesh::report::detail {
namespace {

const DeviceFacts* device_of(const RankFacts& facts) {
  const auto index = static_cast<std::size_t>(facts.device);
  return facts.device < 0 || index >= facts.devices.size() ? nullptr : &facts.devices[index];
}

bool has_device(const RankFacts& facts) { return device_of(facts) != nullptr; }

// The values of the ranks' devices, and "" for ranks without a device. Empty if all devices are
// equal.
std::vector<Variant> differing_devices(
    const Examination& job, const std::function<std::string(const DeviceFacts&)>& value) {
  auto all = variants(job, [&](const RankFacts& facts) {
    return has_device(facts) ? value(*device_of(facts)) : std::string{};
  });
  const auto real = std::ranges::count_if(all, [](const Variant& v) { return !v.value.empty(); });
  if (real < 2) all.clear();
  return all;
}

// Ranks that share memory may still see the same UUID of devices of different machines, so the
// node is part of the key.
using Key = std::pair<std::int32_t, std::string>;

}  // namespace

Findings check_shared_devices(const Rule& rule, const Examination& job) {
  std::map<Key, Members> users;
  for (const RankFacts& facts : job.ranks)
    if (has_device(facts)) users[{facts.node, device_of(facts)->uuid}].push_back(&facts);
  Findings findings;
  for (const auto& [key, ranks] : users) {
    if (ranks.size() < 2) continue;
    const RankList list = ranks_of(ranks);
    const DeviceFacts& device = *device_of(*ranks.front());
    findings.push_back(finding(
        rule, list,
        fmt::format("{} use one device ({} {} of host {})", ranks_text(list), device.name,
                    device.bus_id, ranks.front()->host),
        "NCCL refuses two ranks on one device, and a mesh with devices does not open",
        "give each rank its own device: srun --gpus-per-task=1, mpirun with one rank per device, "
        "or CUDA_VISIBLE_DEVICES for each rank; for a test, set MeshOptions::share_devices"));
  }
  return findings;
}

Findings check_missing_devices(const Rule& rule, const Examination& job) {
  auto without = ranks_with(job, [](const RankFacts& facts) { return !has_device(facts); });
  if (without.empty() || without.size() == job.ranks.size()) return {};
  const RankFacts& first = job.ranks[static_cast<std::size_t>(without.front())];
  const std::string reason =
      first.why_no_devices.empty() ? "no device is visible" : first.why_no_devices;
  return {finding(rule, without,
                  fmt::format("no device on {}, although other ranks have one: {}",
                              ranks_text(without), reason),
                  "the ranks cannot agree on device memory, and the mesh does not open",
                  "check CUDA_VISIBLE_DEVICES and nvidia-smi on these hosts, and that the job asks "
                  "for devices on all nodes (srun --gpus-per-node)")};
}

Findings check_device_kinds(const Rule& rule, const Examination& job) {
  const auto kinds = differing_devices(job, [](const DeviceFacts& device) {
    return fmt::format("{}, {}", device.name, size_text(device.memory));
  });
  return differing(rule, kinds, "the devices differ",
                   "the fastest device waits for the slowest, and the smallest memory limits all",
                   "ask the batch system for one kind of device (srun --gres=gpu:KIND:N), or give "
                   "the ranks different amounts of work");
}

Findings check_device_ecc(const Rule& rule, const Examination& job) {
  const auto modes = differing_devices(
      job, [](const DeviceFacts& device) { return std::string{device.has_ecc ? "on" : "off"}; });
  return differing(rule, modes, "error correction (ECC) differs",
                   "without ECC, a flipped bit changes results without any message; with ECC, some "
                   "devices have less memory",
                   "nvidia-smi -e 1 on the hosts where it is off, then reset the device");
}

Findings check_visible_devices(const Rule& rule, const Examination& job) {
  const auto states = variants(job, [](const RankFacts& facts) {
    return std::string{facts.variables.contains("CUDA_VISIBLE_DEVICES") ? "set" : "not set"};
  });
  return differing(rule, states, "CUDA_VISIBLE_DEVICES",
                   "a rank that sees all devices chooses by its local rank, and may choose the "
                   "device of another rank",
                   "set CUDA_VISIBLE_DEVICES on all ranks, or on none");
}

Findings check_device_driver(const Rule& rule, const Examination& job) {
  auto ranks = ranks_with(
      job, [](const RankFacts& facts) { return facts.has_device_nodes && facts.devices.empty(); });
  if (ranks.empty()) return {};
  const RankFacts& first = job.ranks[static_cast<std::size_t>(ranks.front())];
  return {finding(
      rule, std::move(ranks),
      fmt::format("/dev/nvidia* exists, but no device can be used: {}",
                  first.why_no_devices.empty() ? "the reason is not known" : first.why_no_devices),
      "the program runs without devices, or not at all",
      "run nvidia-smi on the host; in a container, start it with --gpus all, so that "
      "it gets libcuda.so.1 of the host")};
}

}  // namespace rankmesh::report::detail
