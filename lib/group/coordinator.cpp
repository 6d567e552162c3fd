#include "rankmesh/group/coordinator.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "detail/check_call.hpp"
#include "detail/rewritten.hpp"
#include "detail/router.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/group/detail/in_flight.hpp"
#include "transport/shm/algorithms.hpp"

namespace rankmesh {
namespace detail {
namespace {

bool uses_in_place(const Call& call, const Channel& channel) {
  return channel.in_place != nullptr && shm::is_symmetric(call, &channel) &&
         channel.in_place->supports(call);
}

}  // namespace

void CallGuard::refuse(const MeshServices& services) {
  throw UsageError{
      fmt::format("two threads use one mesh at the same time (rank {})", services.rank.value()),
      "issue all operations from one thread, or guard the mesh with a mutex"};
}

}  // namespace detail

GroupCoordinator::GroupCoordinator(std::string name, std::shared_ptr<detail::Channel> channel,
                                   std::shared_ptr<detail::MeshServices> services)
    : name_{std::move(name)},
      channel_{std::move(channel)},
      services_{std::move(services)},
      size_{channel_->ranks.size()},
      rank_in_group_{channel_->ranks.index_of(services_->rank).value()} {
  resolve_routes();
}

GroupCoordinator::~GroupCoordinator() = default;

void GroupCoordinator::resolve_routes() {
  // Names of dynamic groups are for messages, and may differ between members; duplicates
  // communicators are called name[key].
  const std::string name = channel_->families.empty() ? "" : name_.substr(0, name_.find('['));
  router_ = std::make_unique<detail::Router>(services_->routes, *channel_, name);
}

const RankSet& GroupCoordinator::ranks() const noexcept { return channel_->ranks; }
Rank GroupCoordinator::rank() const noexcept { return services_->rank; }
std::int32_t GroupCoordinator::local_rank() const noexcept { return services_->local_rank; }

MPI_Comm GroupCoordinator::native_mpi() const {
  if (services_->closed || !channel_->comm)
    throw ClosedError{fmt::format("'{}' is closed", name_), "take the handle before close()"};
  return channel_->comm.native();
}

// A failure of NCCL's breaks the group: it leaves such a communicator to be aborted.
template <class Action>
void GroupCoordinator::on_device_checked(Action&& action) {
  try {
    action();
  } catch (const UsageError&) {
    throw;  // refused before NCCL saw it
  } catch (const UnsupportedError&) {
    throw;
  } catch (const Error& error) {
    channel_->broken = error.message();
    throw;
  }
}

Transport& GroupCoordinator::device_transport(std::string_view what) const {
  if (channel_->device != nullptr) return *channel_->device;
  if (!services_->no_device.empty())
    throw NoDeviceError{fmt::format("{}.{} on device memory: there is no device transport: {}",
                                    name_, what, services_->no_device),
                        "use host memory, or a machine with CUDA and NCCL"};
  if (channel_->families.empty())
    throw NoDeviceError{
        fmt::format("{}.{} on device memory: the group was adopted without an NCCL communicator",
                    name_, what),
        "give adopt() the ncclComm_t too, or use host memory"};
  throw NoDeviceError{
      fmt::format("{}.{} on device memory: its NCCL communicator is not open", name_, what),
      fmt::format("open it with mesh.open({{\"{}\"}}), or leave the option 'lazy' out", name_)};
}

ncclComm* GroupCoordinator::native_nccl() const {
  if (services_->closed || !channel_->comm || !channel_->broken.empty())
    throw ClosedError{fmt::format("'{}' is closed or broken", name_), "take the handle before"};
  (void)device_transport("native_nccl");
  return channel_->device_facts.native;
}

StreamRef GroupCoordinator::stream() const {
  if (services_->closed || !channel_->comm)
    throw ClosedError{fmt::format("'{}' is closed", name_), "its stream went with it"};
  (void)device_transport("stream");
  return channel_->device_facts.stream();
}

void GroupCoordinator::wait(StreamRef stream) {
  const detail::CallGuard guard{*services_};
  if (services_->closed || !channel_->comm)
    throw ClosedError{fmt::format("'{}' is closed", name_), "wait before close()"};
  (void)device_transport("wait");
  on_device_checked([&] { channel_->device_facts.wait(stream, Deadline{channel_->timeout}); });
}

const BootstrapReport* GroupCoordinator::bootstrap() const noexcept {
  const auto& report = channel_->device_facts.bootstrap;
  return report ? &*report : nullptr;
}

void GroupCoordinator::check(const Call& call, bool on_device) const {
  if (services_->closed || !channel_->comm)
    throw ClosedError{fmt::format("{}.{} after close()", name_, to_string(call.operation)),
                      "close the mesh last"};
  if (!channel_->broken.empty())
    throw ClosedError{
        fmt::format("{}.{}: the group is broken: {}", name_, to_string(call.operation),
                    channel_->broken),
        "after a timeout end the program or make a new mesh of the ranks that are left"};
  if (on_device) (void)device_transport(to_string(call.operation));
  detail::check_call(call, name_, rank_in_group_, size_);
}

// Symmetric memory of this group is used in place; for anything else the routes are asked.
Transport& GroupCoordinator::transport_of(const Call& call) const {
  if (call.in.window != nullptr || call.out.window != nullptr) {
    for (const SymmetricWindow* window : {call.in.window, call.out.window})
      if (window != nullptr && !window->is_open)
        throw ClosedError{fmt::format("{}.{} on symmetric memory of a mesh that is closed", name_,
                                      to_string(call.operation)),
                          "the memory went with its mesh: allocate it on one that is open"};
    if (detail::uses_in_place(call, *channel_)) return *channel_->in_place;
  }
  return router_->choose(call);
}

// Operations in shared memory that are under way progress only in calls of rankmesh, so nothing
// here may sit in a blocking call of MPI's. Between two members MPI lets any form meet any other;
// collectives must have the same form on all members, so what is under way is finished first: in
// the order of issue, which is the same everywhere, that cannot be a circle.
void GroupCoordinator::run_beside_shared(const Call& call, Transport& transport) {
  if (is_point_to_point(call.operation)) return run_with_deadline(call, channel_->timeout);
  for (const auto& operation : std::vector{services_->in_flight})
    if (operation->is_shared) operation->wait(Deadline{operation->channel->timeout});
  transport.run(call);
}

void GroupCoordinator::run(const Call& call) {
  const detail::CallGuard guard{*services_};
  run_checked(call);
}

template <Operation operation>
void GroupCoordinator::run_ordinary(const Call& call) {
  detail::MeshServices& services = *services_;
  const detail::CallGuard guard{services};
  // run_checked() says what is wrong, or takes the call another way.
  if (channel_->broken.empty() && services.unusual == 0 &&
      detail::is_plainly_right<operation>(call, rank_in_group_, size_)) [[likely]]
    return router_->choose_ordinary<operation>(call).run(call);
  run_checked(call);
}
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::barrier>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::broadcast>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::reduce>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::all_reduce>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::all_gather>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::reduce_scatter>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::gather>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::scatter>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::all_to_all>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::send>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::recv>(const Call&);
template RANKMESH_API void GroupCoordinator::run_ordinary<Operation::send_recv>(const Call&);

void GroupCoordinator::run_checked(const Call& call) {
  const bool on_device = detail::is_on_device(call);
  check(call, on_device);
  if (!on_device && services_->in_batch)
    throw UsageError{
        fmt::format("{}.{} on host memory inside an NcclGroup", name_, to_string(call.operation)),
        "end the group first: its operations have not been issued, and a peer may wait for them; "
        "the form "
        "with _async joins it"};
  if (on_device)
    run_on_device(call);
  else if (size_ > 1 && detail::Rewritten::is_needed(call)) [[unlikely]]
    run_rewritten(call);
  else
    run_on_host(call);
}

void GroupCoordinator::run_on_host(const Call& call) {
  Transport& transport = transport_of(call);
  // Nobody to wait for, or it waits with a deadline by itself.
  if (size_ == 1 || &transport == channel_->in_place) return transport.run(call);
  if (services_->deadline)
    run_with_deadline(call, *services_->deadline);
  else if (services_->unusual != 0)
    run_beside_shared(call, transport);
  else
    transport.run(call);
}

void GroupCoordinator::run_rewritten(const Call& call) {
  auto rewritten = std::make_unique<detail::Rewritten>(call, rank_in_group_, size_);
  try {
    run_on_host(rewritten->call());
  } catch (...) {
    if (!channel_->broken.empty()) (void)rewritten.release();  // NOLINT: lent to MPI
    throw;
  }
  rewritten->finish();
}

// As it is, or as the plainer call that carries it.
void GroupCoordinator::start_on_host(const Call& call, detail::InFlight& operation) {
  const auto start = [&](const Call& plain) {
    Transport& transport = transport_of(plain);
    operation.is_shared = &transport == channel_->in_place;
    return transport.start(plain);
  };
  if (size_ == 1 || !detail::Rewritten::is_needed(call)) {
    operation.pending = start(call);
    return;
  }
  auto rewritten = std::make_unique<detail::Rewritten>(call, rank_in_group_, size_);
  auto plain = start(rewritten->call());
  operation.pending =
      std::make_unique<detail::RewrittenPending>(std::move(rewritten), std::move(plain));
}

Work GroupCoordinator::start(const Call& call, std::shared_ptr<void> kept) {
  const detail::CallGuard guard{*services_};
  const bool on_device = detail::is_on_device(call);
  check(call, on_device);
  auto operation = std::make_shared<detail::InFlight>();
  operation->channel = channel_;
  operation->services = services_;
  operation->stream = call.stream;
  operation->on_device = on_device;
  operation->kept = std::move(kept);
  operation->step = step_of(call);
  if (!on_device && services_->in_batch) {
    operation->is_gathered = true;
    gather(
        call,
        [this, operation](const Call& now) {
          operation->is_gathered = false;
          start_on_host(now, *operation);
          operation->services->in_flight.push_back(operation);
        },
        [operation](const std::string& why) { operation->failure = why; });
    return Work{std::move(operation)};
  }
  if (!on_device) {
    start_on_host(call, *operation);
  } else if (services_->in_batch) {
    throw UsageError{
        fmt::format("{}.{}_async inside an NcclGroup", name_, to_string(call.operation)),
        "use the form without _async: a batch is asynchronous anyway"};
  } else {
    on_device_checked([&] { operation->pending = channel_->device_facts.start(call); });
  }
  services_->in_flight.push_back(operation);
  return Work{std::move(operation)};
}

void GroupCoordinator::run_on_device(const Call& call) {
  if (!services_->in_batch) return on_device_checked([&] { channel_->device->run(call); });
  if (call.rows != 1 && size_ > 1)
    throw UsageError{
        fmt::format("{}.{} along another axis than the first inside an NcclGroup", name_,
                    to_string(call.operation)),
        "it is a collective and a copy, one after the other: leave it out of the group"};
  channel_->device->validate(call);
  gather(call, [this](const Call& now) { on_device_checked([&] { channel_->device->run(now); }); },
         {});
}

// Until the end of the batch; the blocks of a v-form may be gone by then.
void GroupCoordinator::gather(const Call& call, std::function<void(const Call&)> issue,
                              std::function<void(const std::string&)> give_up) {
  const auto copy = [](const Blocks* blocks) {
    return blocks == nullptr ? std::optional<Blocks>{} : std::optional{*blocks};
  };
  services_->gathered.push_back(
      {channel_->place,
       [call, issue = std::move(issue), in = copy(call.in_blocks), out = copy(call.out_blocks)] {
         Call now = call;
         now.in_blocks = in ? &*in : nullptr;
         now.out_blocks = out ? &*out : nullptr;
         issue(now);
       },
       std::move(give_up)});
}

// What members who wait in this operation have in common.
WaitPoint GroupCoordinator::step_of(const Call& call) {
  WaitPoint step;
  const auto world_rank = [&](RankInGroup rank) {
    return static_cast<int>(channel_->ranks.at(rank.value()).value());
  };
  std::string identity = channel_->identity + "|" + channel_->ranks.to_string();
  if (call.operation == Operation::send || call.operation == Operation::recv) {
    // Both ends build the same text, so that a peer who waits for the other half is recognised.
    const bool sends = call.operation == Operation::send;
    const RankInGroup from = sends ? rank_in_group_ : call.source;
    const RankInGroup to = sends ? call.destination : rank_in_group_;
    identity += fmt::format("|{}>{}|{}", from.value(), to.value(), call.tag);
    step.activity = fmt::format("{}.{} {} rank {} (tag {})", name_, to_string(call.operation),
                                sends ? "to" : "from", world_rank(sends ? to : from), call.tag);
    step.members = {world_rank(from), world_rank(to)};
  } else if (call.operation == Operation::send_recv) {
    identity += fmt::format("|exchange|{}", call.tag);
    step.activity = fmt::format("{}.send_recv to rank {} from rank {}", name_,
                                world_rank(call.destination), world_rank(call.source));
    step.members = {world_rank(call.destination), world_rank(call.source)};
  } else {
    const std::uint64_t number = channel_->collectives++;
    identity += fmt::format("|{}|{}", to_string(call.operation), number);
    step.activity =
        fmt::format("{}.{} (collective {} of its group)", name_, to_string(call.operation), number);
    for (const Rank rank : channel_->ranks) step.members.push_back(static_cast<int>(rank.value()));
  }
  step.key = hash_bytes(identity).low;
  return step;
}

void GroupCoordinator::run_with_deadline(const Call& call, Deadline::Duration duration) {
  const WaitPoint step = step_of(call);
  auto pending = transport_of(call).start(call);
  const auto keep_lent = [&](const char* why) {
    channel_->broken = why;
    (void)pending.release();  // NOLINT: MPI may still write to what the operation lent it
  };
  try {
    services_->monitor->wait(
        [&] {
          if (pending->test()) return true;
          if (services_->advance_shared) services_->advance_shared();
          return false;
        },
        step, Deadline{duration});
  } catch (const UsageError&) {
    throw;  // a message of another length: the operation is complete
  } catch (const Error& error) {
    keep_lent(error.message().c_str());
    throw;
  } catch (...) {
    keep_lent("an operation ended by an exception");
    throw;
  }
}

}  // namespace rankmesh
