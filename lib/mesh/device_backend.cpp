// SPDX-License-Identifier: BSD-3-Clause
// Chooses the devices of a mesh.
#include "detail/device_backend.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "detail/nccl_backend.hpp"
#include "device/kernels/load.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/launcher.hpp"
#include "rankmesh/base/settings.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/nccl/batch.hpp"
#include "rankmesh/device/nccl/mode.hpp"
#include "wait/detail/values_of_all.hpp"

namespace rankmesh::detail {
namespace {

// The devices and libraries of this rank, or the reason why it has none.
struct LocalDevices {
  device::CudaVersions cuda = device::cuda_versions();
  const nccl::Library* library = nullptr;
  std::string why_not;

  LocalDevices() {
    why_not = device::why_no_device(cuda);
    if (!why_not.empty()) return;
    try {
      library = &nccl::Library::load();
    } catch (const NoDeviceError& error) {
      why_not = error.message();
    }
  }

  // Whether the machine has a driver that cannot be used. A machine without devices is nothing to
  // warn of, but this one probably has devices.
  [[nodiscard]] bool has_broken_driver() const {
    return cuda.driver != 0 && cuda.error != cudaSuccess && cuda.error != cudaErrorNoDevice;
  }
};

// The mode decides which communicators the ranks create.
std::string mode_in_words() {
  const std::optional<bool> forced = nccl::forced_blocking();
  return !forced ? "not set" : *forced ? "1" : "0";
}

// Returns the facts that must be the same on all ranks: whether there are devices, and the
// libraries.
Agreement agreement_on(const MeshOptions& options, const LocalDevices& local) {
  Agreement agreement;
  // Ranks without devices may have different reasons, so the reason is not part of the hash.
  const std::string kind = local.library == nullptr ? "none" : "visible";
  agreement.add("devices", hash_bytes(kind),
                local.why_not.empty() ? kind : "none: " + local.why_not);
  agreement.add("NCCL", local.library == nullptr ? "none" : local.library->version_text());
  agreement.add("NCCL_COMM_BLOCKING", mode_in_words());
  agreement.add("CUDA runtime", fmt::format("{}", local.cuda.runtime));
  if (options.devices == DeviceUse::required && local.library == nullptr)
    agreement.fail("devices are required: " + local.why_not);
  // A library that was asked for by name must be there, if there are devices that could use it.
  if (local.cuda.devices > 0 && local.library == nullptr &&
      environment_variable("RANKMESH_NCCL_LIBRARY"))
    agreement.fail(local.why_not);
  return agreement;
}

// The first version of NCCL that can use several MIG instances of one GPU in a communicator.
constexpr int first_with_instances = 23003;

// The device of this rank, and the compute capability of the device of each rank.
struct ChosenDevice {
  device::Claim claim;
  std::vector<int> compute_capabilities;
};

// Chooses a device for this rank. No other rank may use it, unless the options allow sharing.
ChosenDevice choose_device(const MeshOptions& options, ControlPlane& control, int visible_devices,
                           int nccl_version) {
  const Placement& placement = control.placement;
  const Participants all = control.all();
  std::string failure;
  device::Claim claim;
  device::Identity mine;
  try {
    nccl::Batch::require_no_other(nullptr);
    claim = device::choose(
        options.device,
        launcher_local_rank(environment_variable).value_or(placement.local_rank(control.rank())),
        visible_devices);
    mine = device::identity_of(claim.device());
  } catch (const Error& error) {
    failure = error.message();
  }
  all.agree("the comparison of devices", failure);
  const std::vector<device::Identity> identities =
      values_of_all(all, mine, "the comparison of devices");
  ChosenDevice chosen{std::move(claim), {}};
  for (const device::Identity& identity : identities)
    chosen.compute_capabilities.push_back(identity.compute_capability);
  if (options.share_devices) return chosen;
  std::vector<std::int32_t> nodes;
  for (std::int64_t r = 0; r < placement.world_size(); ++r) nodes.push_back(placement.node(r));
  std::string shared = device::shared_device(nodes, identities);
  if (shared.empty() && nccl_version < first_with_instances)
    shared = device::shared_gpu(nodes, identities);
  all.agree("the NCCL bootstrap", shared);
  return chosen;
}

// Logs variables that only the program may set, but that change how communicators run side by side.
void report_environment(const ControlPlane& control, const nccl::Library& library) {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' && std::string_view{value} != "0";
  };
  if (nccl::forced_blocking() == false && library.version() >= 22300)
    control.log(
        LogLevel::warning,
        "NCCL_COMM_BLOCKING is 0, in the environment or in nccl.conf: NCCL starts a thread for "
        "every call on device memory");
  if (nccl::forced_blocking() == true)
    control.log(LogLevel::warning,
                "NCCL_COMM_BLOCKING is 1, in the environment or in nccl.conf: the creation of NCCL "
                "communicators waits for all ranks without a deadline");
  if (is_set("CUDA_LAUNCH_BLOCKING"))
    control.log(LogLevel::warning,
                "CUDA_LAUNCH_BLOCKING is set: communicators do not run side by side, and may wait "
                "for each other");
}

DeviceBackendOrReason open_backend(const MeshOptions& options, const LocalDevices& local,
                                   std::shared_ptr<ControlPlane> control) {
  if (local.has_broken_driver())
    control->log(LogLevel::warning, fmt::format("the mesh uses no devices on rank {}: {}",
                                                control->rank().value(), local.why_not));
  if (local.library == nullptr) return {nullptr, local.why_not};
  report_environment(*control, *local.library);
  ChosenDevice chosen =
      choose_device(options, *control, local.cuda.devices, local.library->version());
  device::load_kernels();  // before NCCL's first operation
  return {std::make_unique<NcclBackend>(*local.library, std::move(chosen.claim),
                                        std::move(chosen.compute_capabilities), std::move(control)),
          ""};
}

}  // namespace

DeviceProbe probe_devices(const MeshOptions& options) {
  if (options.devices == DeviceUse::off)
    return {{}, [](const std::shared_ptr<ControlPlane>&) {
              return DeviceBackendOrReason{nullptr, "MeshOptions::devices is off"};
            }};
  const LocalDevices local;
  return {agreement_on(options, local), [options, local](std::shared_ptr<ControlPlane> control) {
            return open_backend(options, local, std::move(control));
          }};
}

}  // namespace rankmesh::detail
