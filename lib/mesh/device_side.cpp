#include "detail/device_side.hpp"

#include <algorithm>
#include <span>

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
void warm_up(const MeshState& state, std::span<Channel* const> channels) {
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

class NcclSide final : public DeviceSide {
 public:
  NcclSide(MeshState& state, const nccl::Library& library) : state_{state}, library_{library} {}

  // All groups at once in each phase of the bootstrap; `agree` settles over everybody who takes part.
  void open(std::span<Channel* const> channels, const nccl::Agree& agree) {
    std::vector<nccl::BootstrapRequest> requests;
    std::vector<Channel*> opened;
    for (Channel* channel : channels) {
      if (channel->ranks.size() == 1) {
        channel->device = std::make_unique<LocalDeviceTransport>();
        continue;
      }
      requests.push_back(
          {channel->identity, channel->ranks, channel->comm, static_cast<int>(channel->leader.value()), {}});
      opened.push_back(channel);
    }
    nccl::BootstrapTimes times;
    auto comms =
        nccl::bootstrap(library_, requests, *state_.services->roll_call, state_.deadline(), agree, times);
    const std::size_t first = members_.size();
    for (std::size_t i = 0; i < comms.size(); ++i) {
      Channel& channel = *opened[i];
      channel.device = std::make_unique<NcclTransport>(*comms[i], channel.comm.rank(), channel.comm.size(),
                                                       state_.timeout);
      members_.push_back({&channel, std::move(comms[i])});
    }
    std::string failure;
    try {
      warm_up(state_, opened);
    } catch (const Error& error) {
      failure = error.message();
    }
    try {
      agree("the end of the NCCL bootstrap", failure);
    } catch (...) {
      for (Channel* channel : opened) channel->device.reset();
      members_.resize(first);  // their destructors abort
      throw;
    }
    state_.log(LogLevel::info, fmt::format("rank {} opened {} NCCL communicators: unique IDs {:.4f} s, "
                                           "broadcasts {:.4f} s, barriers {:.4f} s, "
                                           "inits {:.4f} s",
                                           state_.services->rank.value(), opened.size(), times.unique_ids,
                                           times.broadcasts, times.barriers, times.inits));
  }

  void open(Channel& channel) override {
    // Only the members take part: they settle on their own communicator.
    mpi::RollCall roll_call{channel.comm, mpi::RollCall::Audience::own, [&](Rank rank) {
                              return state_.services->describe(channel.ranks.at(rank.value()));
                            }};
    Channel* const one[] = {&channel};
    open(one, [&](const std::string& phase, const std::string& failure) {
      Agreement agreement;
      if (!failure.empty()) agreement.fail(failure);
      agreement.settle(channel.comm, roll_call, phase, state_.deadline());
    });
  }

  void close(Channel& channel, const Deadline& deadline) override {
    channel.device.reset();
    const auto member = std::ranges::find(members_, &channel, &Member::channel);
    if (member == members_.end()) return;
    member->comm->finalize();
    member->comm->settle(deadline);
    member->comm->destroy();
    members_.erase(member);
  }

  void close(const Deadline& deadline) override {
    for (const Member& member : members_) member.comm->finalize();
    for (const Member& member : members_) member.comm->settle(deadline);
    for (const Member& member : members_) member.comm->destroy();
    members_.clear();
  }

  // One group for all: aborting one after the other can wait for a peer that has not come to it yet.
  void abort() noexcept override {
    if (members_.empty()) return;
    (void)library_.GroupStart();
    for (const Member& member : members_) member.comm->abort();
    (void)library_.GroupEnd();
  }

 private:
  struct Member {
    Channel* channel;
    std::unique_ptr<nccl::Communicator> comm;
  };
  MeshState& state_;
  const nccl::Library& library_;
  std::vector<Member> members_;  // in the order of opening
};

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
  std::vector<Channel*> channels;
  for (const auto& channel : state.channels) channels.push_back(channel.get());
  auto side = std::make_unique<NcclSide>(state, *local.library);
  side->open(channels,
             [&](const std::string& phase, const std::string& failure) { agree(state, phase, failure); });
  return side;
}

}  // namespace rankmesh::detail
