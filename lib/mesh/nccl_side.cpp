#include "detail/nccl_side.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/agreement.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "transport/detail/nccl_transport.hpp"

namespace rankmesh::detail {
namespace {

std::int64_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  device::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(free);
}

// NCCL connects lazily, which is a meeting of hosts: done here, in one order, it cannot happen
// inside the program's first collectives in another.
void warm_up(Channel& channel, RankInGroup self, float* value, const device::Stream& stream,
             WaitMonitor& monitor, const WaitPoint& step, const Deadline& deadline) {
  const std::int64_t size = channel.ranks.size();
  const Buffer buffer{reinterpret_cast<std::byte*>(value), 1, DataType::float32,
                      MemoryKind::device};
  channel.device->run({.operation = Operation::all_reduce,
                       .in = buffer.as_input(),
                       .out = buffer,
                       .stream = stream});
  Buffer received = buffer;
  received.data += sizeof(float);
  for (const std::int64_t hop : {std::int64_t{1}, size - 1})  // both ways around the ring
    channel.device->run({.operation = Operation::send_recv,
                         .in = buffer.as_input(),
                         .out = received,
                         .destination = (self.value() + hop) % size,
                         .source = (self.value() + size - hop) % size,
                         .stream = stream});
  monitor.wait([&] { return stream.query(); }, step,
               deadline);  // a member that failed ends this wait
}

std::string method_of(const Channel& channel, const GroupOptions& options, std::int64_t ids) {
  if (!options.split_from.empty() && !channel.families.empty())
    return fmt::format("split of '{}'", options.split_from);
  return ids == 1 ? "unique ID" : fmt::format("{} unique IDs", ids);
}

}  // namespace

NcclSide::NcclSide(MeshState& state, const nccl::Library& library, device::Claim claim)
    : state_{state},
      library_{library},
      claim_{std::move(claim)},
      batch_{library},
      split_(state.plan.families().size()) {}

nccl::Communicator* NcclSide::communicator_of(const Channel* channel) const {
  const auto found = std::ranges::find(members_, channel, &Member::channel);
  return found == members_.end() ? nullptr : found->comm.get();
}

Channel* NcclSide::channel_of(std::size_t family, const std::string& duplicate_key) const {
  for (const auto& channel : state_.channels)
    if (channel->duplicate_key == duplicate_key &&
        std::ranges::find(channel->families, family) != channel->families.end())
      return channel.get();
  return nullptr;
}

// Verdicts of an earlier attempt must not end a later one.
std::string NcclSide::identity(const Channel& channel) const {
  return channel.families.empty() ? channel.identity
                                  : fmt::format("{}#{}", channel.identity, attempts_);
}

void NcclSide::give_stream(Channel& channel) {
  const int priority = state_.options_of(channel).priority;
  channel.device_facts.stream = [this, &channel, priority] {
    device::require_current(claim_.device());
    auto& stream = streams_[&channel];
    if (stream.native() == nullptr) stream = device::Stream::create(priority);
    return StreamRef{stream};
  };
  channel.device_facts.wait = [this, &channel](StreamRef ref, const Deadline& deadline) {
    const device::Stream stream = device::Stream::adopt(static_cast<cudaStream_t>(ref.native()));
    const nccl::Communicator* comm = communicator_of(&channel);
    while (true) {
      const bool is_done = stream.query();
      if (comm != nullptr)
        (void)comm->is_ready();  // also where the stream ended because of an error
      if (is_done) return;
      if (deadline.passed())
        throw TimeoutError{fmt::format("the work of '{}' on a stream did not end within {} s",
                                       channel.name, deadline.seconds()),
                           "a collective on it waits: look at what its peers do; abort() ends it",
                           {}};
      std::this_thread::yield();
    }
  };
  channel.device_facts.start = [&channel](const Call& call) {
    device::Event before;
    before.record(call.stream);
    Call own = call;
    own.stream = channel.device_facts.stream();
    before.make_wait(own.stream);
    return channel.device->start(own);
  };
}

void NcclSide::add_member(Channel& channel, std::unique_ptr<nccl::Communicator> comm) {
  channel.device = std::make_unique<NcclTransport>(*comm, channel.comm.rank(), channel.comm.size(),
                                                   claim_, channel.timeout, batch_, graphs_);
  channel.device_facts.native = comm->native();
  give_stream(channel);
  members_.push_back({&channel, std::move(comm)});
}

// Leaves the members from `first` on as if they had never been opened.
void NcclSide::undo(std::size_t first) noexcept {
  (void)library_.GroupStart();
  for (std::size_t m = first; m < members_.size(); ++m) members_[m].comm->abort();
  (void)library_.GroupEnd();
  for (std::size_t m = first; m < members_.size(); ++m) {
    members_[m].channel->device.reset();
    members_[m].channel->device_facts = {};
  }
  members_.resize(first);
  scratch_.reset();  // not before: cudaFree waits for what the aborts have ended
}

void NcclSide::drain(const Deadline& deadline) {
  device::require_current(claim_.device());
  nccl::Batch::require_no_other(nullptr);
  device::drain(deadline);
}

// NCCL shares what a parent has where the parent's own configuration says so, not the child's.
bool NcclSide::is_shared(const Channel& channel) const {
  if (!channel.duplicate_key.empty()) return false;
  for (std::size_t f = 0; f < state_.plan.families().size(); ++f) {
    const GroupOptions& options = state_.plan.options(f);
    if (options.share_resources &&
        std::ranges::find(channel.families, state_.plan.index_of(options.split_from)) !=
            channel.families.end())
      return true;
  }
  return false;
}

// All groups at once in each phase.
void NcclSide::bootstrap(std::span<Channel* const> channels, const Settle& settle,
                         nccl::BootstrapTimes& times) {
  std::vector<nccl::BootstrapRequest> requests;
  for (const Channel* channel : channels) {
    GroupOptions options = state_.options_of(*channel);
    options.share_resources = is_shared(*channel);
    const bool has_scalable = library_.CommInitRankScalable != nullptr;
    const std::int64_t ids =
        channel->families.empty() || !has_scalable
            ? 1
            : state_.plan.unique_ids(channel->families.front(), channel->ranks.size());
    requests.push_back({channel->name, identity(*channel), channel->ranks, channel->comm,
                        static_cast<int>(channel->leader.value()), static_cast<int>(ids), options});
  }
  auto comms = nccl::bootstrap(library_, requests, *state_.services->monitor, state_.deadline(),
                               settle, times);
  for (std::size_t i = 0; i < comms.size(); ++i) {
    channels[i]->device_facts.bootstrap =
        BootstrapReport{.method = method_of(*channels[i], requests[i].options, requests[i].ids)};
    add_member(*channels[i], std::move(comms[i]));
  }
}

// Every rank of a parent takes part in its split, with a child or without.
void NcclSide::split(const std::vector<bool>& names, const Settle& settle,
                     nccl::BootstrapTimes& times) {
  std::vector<nccl::SplitRequest> requests;
  std::vector<Channel*> children;
  std::string failure;
  bool is_asked = false;  // the same on every rank
  for (std::size_t f = 0; f < names.size(); ++f) {
    const GroupOptions& options = state_.plan.options(f);
    if (!names[f] || split_[f] || options.split_from.empty() || !state_.plan.has_communicators(f))
      continue;
    is_asked = true;
    Channel* parent = channel_of(state_.plan.index_of(options.split_from), {});
    if (parent == nullptr || parent->ranks.size() == 1) continue;
    nccl::Communicator* comm = communicator_of(parent);
    if (comm == nullptr) {
      failure = fmt::format("'{}' is to be split from '{}', which is not open",
                            state_.plan.families()[f].name(), options.split_from);
      break;
    }
    const auto place = state_.plan.families()[f].find(state_.services->rank);
    std::vector<std::string> keys = options.duplicates;
    if (state_.plan.needs_creation(f)) keys.insert(keys.begin(), std::string{});
    for (const std::string& key : keys) {
      Channel* child = place ? channel_of(f, key) : nullptr;
      const bool is_made = child != nullptr && child->ranks.size() > 1 && child->device == nullptr;
      requests.push_back({state_.plan.families()[f].name(),
                          fmt::format("{}#{}#{}", f, key, attempts_), comm, parent->ranks,
                          is_made ? std::optional{static_cast<int>(place->group)} : std::nullopt,
                          is_made ? static_cast<int>(place->rank_in_group.value()) : 0, options});
      children.push_back(is_made ? child : nullptr);
    }
  }
  if (!is_asked) return;
  settle("the splits of NCCL communicators", failure);
  auto comms = nccl::split(requests, *state_.services->monitor, state_.deadline(), settle, times);
  for (std::size_t i = 0; i < comms.size(); ++i) {
    if (comms[i] == nullptr) continue;
    children[i]->device_facts.bootstrap =
        BootstrapReport{.method = method_of(*children[i], requests[i].options, 0)};
    add_member(*children[i], std::move(comms[i]));
  }
  for (std::size_t f = 0; f < names.size(); ++f)
    if (names[f]) split_[f] = true;
}

WaitPoint NcclSide::step(const std::string& activity, const Channel& channel) const {
  WaitPoint step{
      hash_bytes(activity + identity(channel) + channel.ranks.to_string()).low, activity, {}};
  for (const Rank rank : channel.ranks) step.members.push_back(static_cast<int>(rank.value()));
  return step;
}

void NcclSide::finish(std::size_t first, const Settle& settle, const nccl::BootstrapTimes& times,
                      std::int64_t free_before) {
  std::string failure;
  const auto warm_up_step = [&](const Channel& channel) {
    return step(fmt::format("NCCL bootstrap of '{}': warm-up", channel.name), channel);
  };
  const auto opened = static_cast<std::int64_t>(members_.size() - first);
  try {
    const std::int64_t by_inits = opened == 0 ? 0 : (free_before - free_memory()) / opened;
    const device::Stream stream = device::Stream::create();
    float* value = nullptr;
    device::check(cudaMalloc(&value, 4 * sizeof(float)), "cudaMalloc");
    scratch_.reset(value);  // where something fails undo() frees it
    device::check(cudaMemsetAsync(value, 0, 4 * sizeof(float), stream.native()), "cudaMemsetAsync");
    // In the order of the channels, which is the plan's: the same for any two ranks.
    for (const auto& channel : state_.channels) {
      const auto member =
          std::find_if(members_.begin() + static_cast<std::ptrdiff_t>(first), members_.end(),
                       [&](const Member& m) { return m.channel == channel.get(); });
      if (member == members_.end()) continue;
      const std::int64_t before = free_memory();
      const auto begin = std::chrono::steady_clock::now();
      warm_up(*channel, *channel->ranks.index_of(state_.services->rank), value, stream,
              *state_.services->monitor, warm_up_step(*channel), state_.deadline());
      BootstrapReport& report = *channel->device_facts.bootstrap;
      report = {report.method,  opened,      times.unique_ids, times.broadcasts,
                times.barriers, times.inits, times.splits};
      report.warm_up =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      report.device_memory =
          std::max<std::int64_t>(by_inits, 0) + std::max<std::int64_t>(before - free_memory(), 0);
    }
    scratch_.reset();
  } catch (const Error& error) {
    failure = error.message();
    for (std::size_t m = first; m < members_.size(); ++m)
      state_.services->monitor->give_up(warm_up_step(*members_[m].channel), failure);
  }
  settle("the end of the NCCL bootstrap", failure);
  state_.log(LogLevel::info,
             fmt::format("rank {} opened {} NCCL communicators: unique IDs {:.4f} s, broadcasts "
                         "{:.4f} s, barriers "
                         "{:.4f} s, inits {:.4f} s, splits {:.4f} s",
                         state_.services->rank.value(), opened, times.unique_ids, times.broadcasts,
                         times.barriers, times.inits, times.splits));
}

void NcclSide::open(const std::vector<bool>& names, const Settle& settle) {
  ++attempts_;
  std::vector<Channel*> channels;
  for (const auto& channel : state_.channels) {
    const bool is_asked =
        std::ranges::any_of(channel->families, [&](std::size_t f) { return names[f]; });
    if (!is_asked || channel->device != nullptr) continue;
    if (channel->ranks.size() == 1) {
      channel->device = std::make_unique<LocalDeviceTransport>();
      give_stream(*channel);
    } else if (state_.options_of(*channel).split_from.empty()) {
      channels.push_back(channel.get());
    }
  }
  const std::size_t first = members_.size();
  try {
    nccl::BootstrapTimes times;
    const std::int64_t free_before = free_memory();
    bootstrap(channels, settle, times);
    split(names, settle, times);
    finish(first, settle, times, free_before);
  } catch (...) {
    undo(first);
    // A failed split takes its parent along.
    for (const Member& member : members_)
      if (member.comm->native() == nullptr)
        member.channel->broken = "a split of its communicator failed";
    throw;
  }
}

void NcclSide::open(Channel& channel) {
  if (channel.ranks.size() == 1) {
    channel.device = std::make_unique<LocalDeviceTransport>();
    give_stream(channel);
    return;
  }
  // Only the members take part: they settle on their own communicator.
  WaitMonitor monitor{channel.comm, WaitMonitor::Audience::own, [&](Rank rank) {
                        return state_.services->describe(channel.ranks.at(rank.value()));
                      }};
  const Settle settle = [&](const std::string& phase, const std::string& failure) {
    Agreement agreement;
    if (!failure.empty()) agreement.fail(failure);
    agreement.settle(channel.comm, monitor, phase, state_.deadline());
  };
  const std::size_t first = members_.size();
  Channel* const one[] = {&channel};
  try {
    std::string failure;
    try {
      drain(state_.deadline());
    } catch (const Error& error) {
      failure = error.message();
    }
    settle("the NCCL bootstrap", failure);
    nccl::BootstrapTimes times;
    const std::int64_t free_before = free_memory();
    bootstrap(one, settle, times);
    finish(first, settle, times, free_before);
  } catch (...) {
    undo(first);
    throw;
  }
}

void NcclSide::adopt(Channel& channel, ncclComm* native) {
  auto comm = nccl::Communicator::adopt(library_, native, channel.name);
  if (comm->size() != channel.ranks.size() || comm->rank() != channel.comm.rank())
    throw UsageError{
        fmt::format(
            "adopt '{}': this process is rank {} of {} in the NCCL communicator, {} of {} in the "
            "MPI communicator",
            channel.name, comm->rank(), comm->size(), channel.comm.rank(), channel.ranks.size()),
        "adopt communicators of the same ranks in the same order"};
  if (comm->device() != *state_.services->device)
    throw UsageError{
        fmt::format("adopt '{}': the NCCL communicator is on device {}, the mesh drives device {}",
                    channel.name, comm->device(), *state_.services->device),
        "one rank drives one device"};
  channel.device_facts.bootstrap = BootstrapReport{.method = "adopted"};
  add_member(channel, std::move(comm));
}

std::string NcclSide::living_graphs(const Channel* only) const {
  std::vector<std::string> names;
  for (const auto& [name, count] : graphs_.alive(only == nullptr ? "" : only->name))
    names.push_back(fmt::format("{} of '{}'", count, name));
  return names.empty() ? ""
                       : fmt::format("CUDA graphs that hold its operations are alive: {}",
                                     fmt::join(names, ", "));
}

void NcclSide::close(Channel& channel, const Deadline& deadline) {
  channel.device.reset();
  const auto member = std::ranges::find(members_, &channel, &Member::channel);
  if (member != members_.end()) {
    if (channel.broken.empty()) {
      member->comm->finalize();
      if (member->comm->is_owned()) member->comm->wait_until_ready(deadline);
      member->comm->destroy();
    } else {
      member->comm->abort();
    }
    members_.erase(member);
  }
  streams_.erase(&channel);
}

void NcclSide::close(const Deadline& deadline) {
  // What is broken cannot be finalised, and one that fails must not keep the others from their end.
  std::exception_ptr failure;
  const auto each = [&](auto&& step) {
    for (const Member& member : members_) {
      try {
        if (member.channel->broken.empty()) step(*member.comm);
      } catch (const Error& error) {
        member.channel->broken = error.message();
        if (failure == nullptr) failure = std::current_exception();
      }
    }
  };
  abort_broken();  // peers that wait for it are told now
  each([&](nccl::Communicator& comm) {
    for (const auto& memory : symmetric_) memory->deregister(comm);
  });
  each([](nccl::Communicator& comm) { comm.finalize(); });
  each([&](nccl::Communicator& comm) {
    if (comm.is_owned()) comm.wait_until_ready(deadline);
  });
  each([](nccl::Communicator& comm) { comm.destroy(); });
  abort_broken();
  members_.clear();
  symmetric_.clear();
  streams_.clear();
  claim_ = {};
  if (failure != nullptr) std::rethrow_exception(failure);
}

void NcclSide::abort_broken() noexcept {
  (void)library_.GroupStart();
  for (const Member& member : members_)
    if (!member.channel->broken.empty()) member.comm->abort();
  (void)library_.GroupEnd();
}

// One group for all: aborting one after the other can wait for a peer that has not come to it yet.
void NcclSide::abort() noexcept {
  if (members_.empty()) return;
  (void)library_.GroupStart();
  for (const Member& member : members_) member.comm->abort();
  (void)library_.GroupEnd();
}

void NcclSide::end_batch(const Deadline& deadline) {
  const device::Claim::Issuing alone{claim_};
  try {
    batch_.end(deadline);
  } catch (const Error& error) {
    for (const nccl::Communicator* comm : batch_.members())
      for (const Member& member : members_)
        if (member.comm.get() == comm) member.channel->broken = error.message();
    throw;
  }
}

}  // namespace rankmesh::detail
