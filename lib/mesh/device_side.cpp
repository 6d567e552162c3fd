#include "detail/device_side.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "detail/agreement.hpp"
#include "detail/nccl_side.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/nccl/batch.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

// What this rank has, or why it has nothing.
struct LocalDevices {
  device::CudaVersions cuda = device::cuda_versions();
  const nccl::Library* library = nullptr;
  std::string why_not;

  LocalDevices() {
    if (cuda.driver == 0) {
      why_not = "no CUDA driver was found (libcuda.so.1)";
    } else if (cuda.devices == 0) {
      why_not = "a CUDA driver was found, but no device is visible (CUDA_VISIBLE_DEVICES?)";
    } else {
      try {
        library = &nccl::Library::load();
      } catch (const NoDeviceError& error) {
        why_not = error.message();
      }
    }
  }
};

// Settles on the world whether all ranks are well.
void agree(MeshState& state, const std::string& what, const std::string& failure) {
  Agreement agreement;
  if (!failure.empty()) agreement.fail(failure);
  agreement.settle(state.control.view(), *state.services->monitor, what, state.deadline());
}

// Whether there are devices at all must be the same on all ranks, and what drives them too.
void agree_on_devices(MeshState& state, const LocalDevices& local) {
  Agreement agreement;
  // Without devices each rank may have its own reason: that is no disagreement.
  const std::string kind = local.library == nullptr ? "none" : "visible";
  agreement.add("devices", hash_bytes(kind),
                local.why_not.empty() ? kind : "none: " + local.why_not);
  agreement.add("NCCL", local.library == nullptr ? "none" : local.library->version_text());
  agreement.add("CUDA runtime", fmt::format("{}", local.cuda.runtime));
  if (state.options.devices == DeviceUse::required && local.library == nullptr)
    agreement.fail("devices are required: " + local.why_not);
  agreement.settle(state.control.view(), *state.services->monitor, "the choice of devices",
                   state.deadline());
}

// The launcher's number of this process on its node: it counts all processes of the job, where the
// mesh may be on some of them. Nothing where no launcher says it.
std::optional<int> launcher_local_rank() {
  const auto number = [](const char* name) -> std::optional<int> {
    const char* text = std::getenv(name);
    int value = -1;
    if (text == nullptr) return std::nullopt;
    const char* end = text + std::strlen(text);
    const auto [last, error] = std::from_chars(text, end, value);
    return error == std::errc{} && last == end && value >= 0 ? std::optional{value} : std::nullopt;
  };
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PALS_LOCAL_RANKID"})
    if (const auto rank = number(name)) return rank;
  // Slurm's are in batch scripts too, for whatever is started there: they are this process's own
  // only where they fit what PMI says.
  for (const char* name : {"PMIX_RANK", "PMI_RANK"})
    if (number(name) && number(name) == number("SLURM_PROCID")) return number("SLURM_LOCALID");
  return std::nullopt;
}

// Every rank its own device, unless sharing was asked for.
device::Claim choose_device(MeshState& state, const LocalDevices& local) {
  std::string failure;
  device::Claim claim;
  device::Identity mine;
  try {
    nccl::Batch::require_no_other(nullptr);
    claim = device::choose(state.options.device,
                           launcher_local_rank().value_or(state.services->local_rank),
                           local.cuda.devices);
    state.services->device = claim.device();
    mine = device::identity_of(*state.services->device);
  } catch (const Error& error) {
    failure = error.message();
  }
  agree(state, "the comparison of devices", failure);
  std::vector<device::Identity> all(static_cast<std::size_t>(state.plan.world_size()));
  mpi::check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                           state.control.view().native()),
             "MPI_Allgather");
  if (state.options.share_devices) return claim;
  std::vector<std::int32_t> nodes;
  for (std::int64_t r = 0; r < state.plan.world_size(); ++r)
    nodes.push_back(state.placement.node(r));
  agree(state, "the NCCL bootstrap", device::shared_device(nodes, all));
  return claim;
}

// Variables that are the program's to set, but change how communicators run side by side.
void report_environment(const MeshState& state, const nccl::Library& library) {
  const auto is_set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' && std::string_view{value} != "0";
  };
  if (library.version() >= 22600 && !is_set("NCCL_LAUNCH_ORDER_IMPLICIT"))
    state.log(LogLevel::info,
              "NCCL_LAUNCH_ORDER_IMPLICIT is not set: kernels of different communicators must "
              "reach the device in "
              "one order; set to 1 before NCCL is loaded (mpi::NcclLaunchOrder::implicit does it) "
              "it makes that "
              "the order "
              "of the calls");
  if (is_set("CUDA_LAUNCH_BLOCKING"))
    state.log(LogLevel::warning,
              "CUDA_LAUNCH_BLOCKING is set: communicators do not run side by side, and may wait "
              "for each other");
}

}  // namespace

std::unique_ptr<DeviceSide> open_device_side(MeshState& state) {
  if (state.options.devices == DeviceUse::off) {
    state.services->no_device = "MeshOptions::devices is off";
    return nullptr;
  }
  const LocalDevices local;
  agree_on_devices(state, local);
  if (local.library == nullptr) {
    state.services->no_device = local.why_not;
    return nullptr;
  }
  report_environment(state, *local.library);
  device::Claim claim = choose_device(state, local);
  auto side = std::make_unique<NcclSide>(state, *local.library, std::move(claim));
  std::vector<bool> names;
  for (std::size_t f = 0; f < state.plan.families().size(); ++f)
    names.push_back(!state.plan.options(f).lazy);
  side->open(names, [&](const std::string& phase, const std::string& failure) {
    agree(state, phase, failure);
  });
  return side;
}

}  // namespace rankmesh::detail
