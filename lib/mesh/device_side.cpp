#include "detail/device_side.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "detail/agreement.hpp"
#include "detail/nccl_side.hpp"
#include "detail/state.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

// What this rank has, or why it has nothing.
struct Local {
  device::CudaVersions cuda = device::cuda_versions();
  const nccl::Library* library = nullptr;
  std::string why_not;

  Local() {
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
  agreement.settle(state.control.view(), *state.services->roll_call, what, state.deadline());
}

// Whether there are devices at all must be the same on all ranks, and what drives them too.
void agree_on_devices(MeshState& state, const Local& local) {
  Agreement agreement;
  agreement.add("devices", local.library == nullptr ? "none: " + local.why_not : "visible");
  agreement.add("NCCL", local.library == nullptr ? "none" : local.library->version_text());
  agreement.add("CUDA runtime", fmt::format("{}", local.cuda.runtime));
  if (state.options.devices == DeviceUse::required && local.library == nullptr)
    agreement.fail("devices are required: " + local.why_not);
  agreement.settle(state.control.view(), *state.services->roll_call, "the choice of devices",
                   state.deadline());
}

// Every rank its own device, unless sharing was asked for.
device::Claim choose_device(MeshState& state, const Local& local) {
  std::string failure;
  device::Claim claim;
  device::Identity mine;
  try {
    claim = device::choose(state.options.device, state.services->local_rank, local.cuda.devices);
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
  for (std::int64_t r = 0; r < state.plan.world_size(); ++r) nodes.push_back(state.placement.node(r));
  agree(state, "the NCCL bootstrap", device::shared_device(nodes, all));
  return claim;
}

}  // namespace

std::unique_ptr<DeviceSide> open_device_side(MeshState& state) {
  if (state.options.devices == DeviceUse::off) {
    state.services->no_device = "MeshOptions::devices is off";
    return nullptr;
  }
  const Local local;
  agree_on_devices(state, local);
  if (local.library == nullptr) {
    state.services->no_device = local.why_not;
    return nullptr;
  }
  device::Claim claim = choose_device(state, local);
  auto side = std::make_unique<NcclSide>(state, *local.library, std::move(claim));
  std::vector<bool> names;
  for (std::size_t f = 0; f < state.plan.families().size(); ++f) names.push_back(!state.plan.options(f).lazy);
  side->open(names,
             [&](const std::string& phase, const std::string& failure) { agree(state, phase, failure); });
  return side;
}

}  // namespace rankmesh::detail
