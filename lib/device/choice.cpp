// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/choice.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

namespace rankmesh::device {
namespace {

// Meshes do not know each other, but all meshes of a process must use the same device.
struct Claimed {
  std::mutex mutex;
  std::weak_ptr<detail::ClaimedDevice> device;
};

Claimed& process() {
  static Claimed claimed;
  return claimed;
}

}  // namespace

Claim::Claim(int device) {
  const std::lock_guard lock{process().mutex};
  device_ = process().device.lock();
  if (device_ && device_->number != device)
    throw UsageError{
        fmt::format("device {} was requested, but another mesh of this process uses device {}",
                    device, device_->number),
        "use one device per rank: close the other mesh first, or request the same device for both"};
  if (device_ == nullptr) {
    device_ = std::make_shared<detail::ClaimedDevice>(device);
    process().device = device_;
  }
}

Claim::Issuing::Issuing(const Claim& claim) : device_{claim.device_} {
  if (device_->issuing.test_and_set(std::memory_order_acquire))
    throw UsageError{fmt::format("two threads issue NCCL operations on device {} at the same time",
                                 device_->number),
                     "issue the operations of all meshes of the process from one thread: NCCL does "
                     "not support several threads on one device"};
}

std::optional<int> claimed() {
  const std::lock_guard lock{process().mutex};
  const auto device = process().device.lock();
  return device ? std::optional{device->number} : std::nullopt;
}

void require_current(int device) {
  int current = 0;
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current != device)
    throw UsageError{
        fmt::format("device {} is current, but the mesh uses device {}", current, device),
        fmt::format("call cudaSetDevice({}) first", device)};
}

void run_on(int device, const std::function<void()>& action) {
  int current = 0;
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current == device) return action();
  try {
    std::async(std::launch::async, [&] {
      check(cudaSetDevice(device), "cudaSetDevice");
      action();
    }).get();
  } catch (const std::system_error& error) {
    throw Error{fmt::format("no thread can be started for device {}: {}", device, error.what()),
                "raise the limit of processes (ulimit -u)"};
  }
}

Claim choose(std::optional<int> wanted, int local_rank, int visible) {
  if (wanted && (*wanted < 0 || *wanted >= visible))
    throw UsageError{fmt::format("device {} was requested, but {} are visible", *wanted, visible),
                     "check CUDA_VISIBLE_DEVICES"};
  int device = 0;
  if (const auto other = claimed(); !wanted && other) {
    device = *other;
  } else if (wanted) {
    device = *wanted;
  } else {
    check(cudaGetDevice(&device), "cudaGetDevice");
    if (device == 0) device = local_rank % visible;
  }
  Claim claim{device};
  check(cudaSetDevice(device), "cudaSetDevice");
  return claim;
}

Identity identity_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  Identity identity;
  std::memcpy(identity.uuid, &properties.uuid, sizeof identity.uuid);
  check(cudaDeviceGetPCIBusId(identity.bus_id, sizeof identity.bus_id, device),
        "cudaDeviceGetPCIBusId");
  identity.compute_capability = 10 * properties.major + properties.minor;
  return identity;
}

std::string shared_device(std::span<const std::int32_t> nodes,
                          std::span<const Identity> identities) {
  std::map<std::pair<std::int32_t, std::array<unsigned char, 16>>, std::size_t> owner;
  for (std::size_t r = 0; r < nodes.size(); ++r) {
    std::array<unsigned char, 16> uuid;
    std::ranges::copy(identities[r].uuid, uuid.begin());
    const auto [first, is_new] = owner.try_emplace({nodes[r], uuid}, r);
    if (!is_new)
      return fmt::format(
          "ranks {} and {} share one device ({} of node {}): give each rank its own device (srun "
          "--gpus-per-task=1, mpirun with one rank per device, or CUDA_VISIBLE_DEVICES for each "
          "rank), or set MeshOptions::share_devices",
          first->second, r, identities[r].bus_id, nodes[r]);
  }
  return {};
}

std::string shared_gpu(std::span<const std::int32_t> nodes, std::span<const Identity> identities) {
  std::map<std::pair<std::int32_t, std::string>, std::size_t> owner;
  for (std::size_t r = 0; r < nodes.size(); ++r) {
    const auto [first, is_new] = owner.try_emplace({nodes[r], identities[r].bus_id}, r);
    const Identity& other = identities[first->second];
    if (is_new || std::ranges::equal(other.uuid, identities[r].uuid)) continue;
    return fmt::format(
        "ranks {} and {} use two MIG instances of one GPU ({} of node {}), which NCCL before 2.30 "
        "takes for one device: use NCCL 2.30 or later with NCCL_MULTI_RANK_GPU_ENABLE=1, or give "
        "each rank a GPU of its own",
        first->second, r, other.bus_id, nodes[r]);
  }
  return {};
}

}  // namespace rankmesh::device
