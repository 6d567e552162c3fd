#include "detail/device_side.hpp"

#include <fmt/format.h>

#include "detail/agreement.hpp"
#include "detail/state.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/nccl/bootstrap.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/mpi/error.hpp"
#include "transport/detail/nccl_transport.hpp"

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

class NcclSide final : public DeviceSide {
 public:
  NcclSide(std::vector<std::unique_ptr<nccl::Communicator>> comms) : comms_{std::move(comms)} {}

  void close(const Deadline& deadline) override {
    for (const auto& comm : comms_) comm->finalize();
    for (const auto& comm : comms_) comm->settle(deadline);
    for (const auto& comm : comms_) comm->destroy();
  }

  // One group for all: aborting one after the other can wait for a peer that has not come to it yet.
  void abort() noexcept override {
    if (comms_.empty()) return;
    const nccl::Library& library = comms_.front()->library();
    (void)library.GroupStart();
    for (const auto& comm : comms_) comm->abort();
    (void)library.GroupEnd();
  }

 private:
  std::vector<std::unique_ptr<nccl::Communicator>> comms_;
};

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
void choose_device(MeshState& state, const Local& local) {
  std::string failure;
  device::Identity mine;
  try {
    state.services->device =
        device::choose(state.options.device, state.services->local_rank, local.cuda.devices);
    mine = device::identity_of(*state.services->device);
  } catch (const Error& error) {
    failure = error.message();
  }
  agree(state, "the comparison of devices", failure);
  std::vector<device::Identity> all(static_cast<std::size_t>(state.plan.world_size()));
  mpi::check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                           state.control.view().native()),
             "MPI_Allgather");
  if (state.options.share_devices) return;
  std::vector<std::int32_t> nodes;
  for (std::int64_t r = 0; r < state.plan.world_size(); ++r) nodes.push_back(state.placement.node(r));
  agree(state, "the NCCL bootstrap", device::shared_device(nodes, all));
}

// NCCL connects lazily, which is a meeting of hosts: done here, in one order, it cannot happen inside the
// program's first collectives in another.
void warm_up(MeshState& state, std::vector<Channel*> channels) {
  const device::Stream stream = device::Stream::create();
  float* value = nullptr;
  device::check(cudaMalloc(&value, 4 * sizeof(float)), "cudaMalloc");
  device::check(cudaMemsetAsync(value, 0, 4 * sizeof(float), stream.native()), "cudaMemsetAsync");
  try {
    for (Channel* channel : channels) {
      const Buffer buffer{reinterpret_cast<std::byte*>(value), 1, DataType::float32, MemoryKind::device};
      channel->device->run(
          {.operation = Operation::all_reduce, .in = buffer.as_input(), .out = buffer, .stream = stream});
      const std::int64_t self = channel->ranks.index_of(state.services->rank)->value();
      Buffer received = buffer;
      received.data += sizeof(float);
      for (const std::int64_t step :
           {std::int64_t{1}, channel->ranks.size() - 1})  // both ways around the ring
        channel->device->run({.operation = Operation::send_recv,
                              .in = buffer.as_input(),
                              .out = received,
                              .destination = (self + step) % channel->ranks.size(),
                              .source = (self + channel->ranks.size() - step) % channel->ranks.size(),
                              .stream = stream});
      stream.wait(state.deadline());
    }
  } catch (...) {
    (void)cudaFree(value);
    throw;
  }
  device::check(cudaFree(value), "cudaFree");
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
  choose_device(state, local);

  std::vector<nccl::BootstrapRequest> requests;
  std::vector<Channel*> channels;
  for (const auto& channel : state.channels) {
    if (!channel->owned) {
      channel->device = std::make_unique<LocalDeviceTransport>();
      continue;
    }
    requests.push_back(
        {channel->identity, channel->ranks, channel->comm, static_cast<int>(channel->leader.value()), {}});
    channels.push_back(channel.get());
  }
  nccl::BootstrapTimes times;
  auto comms = nccl::bootstrap(
      *local.library, requests, *state.services->roll_call, state.deadline(),
      [&](const std::string& phase, const std::string& failure) { agree(state, phase, failure); }, times);
  for (std::size_t i = 0; i < comms.size(); ++i)
    channels[i]->device = std::make_unique<NcclTransport>(*comms[i], channels[i]->comm.rank(),
                                                          channels[i]->comm.size(), state.timeout);
  auto side = std::make_unique<NcclSide>(std::move(comms));
  std::string failure;
  try {
    warm_up(state, channels);
  } catch (const Error& error) {
    failure = error.message();
    side->abort();
  }
  agree(state, "the end of the NCCL bootstrap", failure);
  state.log(LogLevel::info, fmt::format("rank {} opened {} NCCL communicators: unique IDs {:.4f} s, "
                                        "broadcasts {:.4f} s, barriers {:.4f} s, inits {:.4f} s",
                                        state.services->rank.value(), channels.size(), times.unique_ids,
                                        times.broadcasts, times.barriers, times.inits));
  return side;
}

}  // namespace rankmesh::detail
