// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_dispatcher.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/detail/bucket_mark.hpp"
#include "base/detail/error_in_flight.hpp"
#include "base/detail/private_api.hpp"
#include "detail/progress_in_mpi.hpp"
#include "detail/scratch_call.hpp"
#include "device/stream_memory.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "transport/detail/call_errors.hpp"

namespace rankmesh::detail {
namespace {

bool is_to_itself(const Call& call, RankInGroup self) {
  return is_point_to_point(call.operation) &&
         (call.operation == Operation::recv || call.destination == self) &&
         (call.operation == Operation::send || call.source == self);
}

// Returns the name of the function that the program calls.
std::string function_of(const Call& call) {
  return std::string{to_string(call.operation)} + (call.has_blocks() ? "_v" : "");
}

}  // namespace

RANKMESH_PRIVATE_API bool CallLock::enter_slowly(MeshRuntime& runtime) {
  if (runtime.lock.enter_at_poll()) return true;  // of a transport of the program, in its test()
  if (runtime.lock.enter_after_guests()) return false;
  if (InFunction::is_entered())
    throw UsageError{fmt::format("a function that an operation calls uses a mesh that is in a call "
                                 "(rank {})",
                                 runtime.rank.value()),
                     "use another mesh in this function, or use the mesh after the operation"};
  throw UsageError{
      fmt::format("two threads use one mesh at the same time (rank {})", runtime.rank.value()),
      "issue all operations from one thread, or guard the mesh with a mutex"};
}

CallDispatcher::CallDispatcher(std::string name, std::shared_ptr<Connection> connection,
                               std::shared_ptr<MeshRuntime> runtime)
    : name_{std::move(name)},
      connection_{std::move(connection)},
      runtime_{std::move(runtime)},
      self_{connection_->group.ranks.index_of(runtime_->rank).value()},
      size_{connection_->size()},
      router_{runtime_->routes, connection_->host(), connection_->group,
              connection_->group.name_in_routes(name_)} {
  publication_.recording = connection_->recordings.host;
  publication = &publication_;
  if (runtime_->device_watch != nullptr) runtime_->device_watch->open(*connection_);
  if (runtime_->control == nullptr) return;
  publication_.current = &runtime_->control->board().own().call;
  publication_.group = ShortName{name_};
}

CallDispatcher::~CallDispatcher() { lifetime_->is_over = true; }

std::uint32_t CallDispatcher::name_index() const {
  const auto& names = connection_->group.names;
  const auto own = std::ranges::find(names, name_) - names.begin();
  return own == std::ssize(names) ? 0 : static_cast<std::uint32_t>(own);
}

void CallDispatcher::require_open(const char* hint) const {
  if (runtime_->is_closed || connection_->is_closed())
    throw ClosedError{fmt::format("'{}' is closed", name_), hint};
}

RoutedTransport* CallDispatcher::check(const Call& call) const {
  runtime_->throw_if_lost();
  if (!is_usable()) throw_unusable(function_of(call));
  RoutedTransport* on_device = nullptr;
  if (call.is_on_device()) {
    on_device = program_transport(call);
    if (on_device == nullptr) on_device = &device(to_string(call.operation));
  }
  check_call(call, name_, self_, size_);
  return on_device;
}

// Symmetric memory of this group is used directly, and messages of this member to itself are
// copied. For all other calls, the routes choose the transport.
RoutedTransport& CallDispatcher::transport_for(const Call& call) const {
  for (const SymmetricWindow* window : {call.in.window, call.out.window})
    if (window != nullptr && !window->is_open)
      throw ClosedError{fmt::format("{}.{} uses symmetric memory of a closed mesh", name_,
                                    to_string(call.operation)),
                        "close() frees symmetric memory: allocate it on an open mesh"};
  const auto& to_itself = connection_->host().to_itself;
  if (to_itself != nullptr && is_to_itself(call, self_)) return *to_itself;
  if (call.in.window != nullptr || call.out.window != nullptr) {
    for (const auto& transport : connection_->host().list)
      if (transport->uses_symmetric_memory(call)) return *transport;
  }
  return router_.choose(call);
}

void CallDispatcher::run(const Call& call) {
  const CallLock lock{*runtime_};
  run_checked(call);
}

// Keeps the error of an operation, so that other ranks learn the reason if this rank leaves the
// mesh because of it. If a later operation succeeds, the program has continued, and the error is
// forgotten. The fast path does not do this.
template <class Action>
void CallDispatcher::keeping_failure(const Call& call, Action&& action) {
  try {
    action();
    if (runtime_->last_failure.empty()) return;
    runtime_->last_failure.clear();
    forget_last_error();
  } catch (const Error& error) {
    runtime_->last_failure = error.message();
    runtime_->throw_if_result_of_loss(error);
    throw;
  } catch (const std::bad_alloc&) {
    out_of_memory(call, point_of(call, next_number(call)));
  }
}

// The other members wait for this one, and learn why it does not come.
void CallDispatcher::out_of_memory(const Call& call, const WaitPoint& point) {
  const Error error = too_little_memory(point.activity, call);
  runtime_->last_failure = error.message();
  connection_->mark_broken(error);
  runtime_->control->monitor.give_up(point, error.message());
  throw Error{error};
}

// A call of a batch is shown where it is issued.
const CallRanges* CallDispatcher::ranges() const {
  return runtime_->batch.is_open() ? nullptr : runtime_->ranges();
}

std::optional<std::int64_t> CallDispatcher::arrived(RankInGroup from, int tag) {
  const auto bytes = [&] {
    const CallLock lock{*runtime_};
    const Call call{.operation = Operation::recv, .tag = tag, .source = from};
    (void)check(call);
    return transport_for(call).arrived(from, tag);
  }();
  if (!bytes) advance_between_tests();
  return bytes;
}

// Adds the function that the program has called.
Call CallDispatcher::of_caller(const Call& call) const {
  Call marked = call;
  if (!is_point_to_point(call.operation) && call.user == nullptr && call.rows == 1)
    marked.bucket |= BucketMark::of_function(runtime_->caller);
  return marked;
}

void CallDispatcher::run_checked(const Call& of_program) {
  const Call call = of_caller(of_program);
  const CallRanges::ShownCall range{ranges(), name_, call.operation};
  keeping_failure(call, [&] {
    try {
      route(call);
    } catch (const FailedReduction& error) {
      connection_->mark_broken(error);
      runtime_->control->monitor.give_up(collective_point(call, connection_->last_call()),
                                         error.message());
      throw;
    }
  });
}

void CallDispatcher::route(const Call& call) {
  if (RoutedTransport* const on_device = check(call)) return run_on_device(call, *on_device);
  if (runtime_->batch.is_open())
    throw UsageError{
        fmt::format("{}.{} on host memory inside an NcclGroup", name_, function_of(call)),
        "end the group first: its operations have not been issued, and a peer may wait for them; "
        "the form with _async joins the group"};
  if (size_ > 1 && ScratchCall::is_needed(call)) [[unlikely]]
    run_on_scratch(call);
  else
    run_on_host(call);
}

void CallDispatcher::run_on_host(const Call& call) {
  RoutedTransport& transport = transport_for(call);
  if (is_point_to_point(call.operation)) connection_->messages.add(call);
  if (transport.is_polled(call)) return transport.run(call, *this);
  if (runtime_->deadline) return run_polled(call);
  if (runtime_->slow_path.any()) return run_in_mpi_beside_polled(call, transport);
  transport.run(call, *this);
}

// Runs a call that blocks inside MPI, while operations may be in flight that make progress only in
// calls of rankmesh.
void CallDispatcher::run_in_mpi_beside_polled(const Call& call, RoutedTransport& transport) {
  // Another thread may have issued such operations.
  runtime_->in_flight.continue_in_this_thread();
  const auto meshes = EverythingInFlight::instance().with_polled_of_this_thread();
  if (meshes.empty()) return transport.run(call, *this);
  // A message waits in rankmesh instead, even if its peer blocks in MPI.
  if (is_point_to_point(call.operation)) return run_polled(call);
  // MPI does not match a non-blocking collective with a blocking one, so a collective blocks, after
  // the polled collectives have ended. It cannot wait for polled messages, because their peers may
  // make this collective first.
  finish_polled_collectives(meshes);
  const ProgressInMpi progress{*runtime_, meshes};
  transport.run(call, *this);
}

void CallDispatcher::finish_polled_collectives(
    const std::vector<std::shared_ptr<MeshRuntime>>& meshes) {
  for (const auto& mesh : meshes) {
    std::optional<GuestLock> lock;
    std::optional<AtPoll> own;  // the wait opens only the other mesh
    if (mesh != runtime_) {
      if (!lock.emplace(*mesh).is_held()) continue;
      own.emplace(&runtime_->lock);
    }
    mesh->in_flight.finish_polled(mesh->control->monitor);
  }
}

void CallDispatcher::run_on_scratch(const Call& call) {
  auto scratch = std::make_unique<ScratchCall>(call, self_, size_);
  try {
    run_on_host(scratch->call());
  } catch (...) {
    // MPI may still use the scratch memory of a call that has failed, so this memory is leaked.
    if (!connection_->is_usable()) leak(scratch);
    throw;
  }
  scratch->finish();
}

void CallDispatcher::start_on_host(const Call& call, AsyncOperation& operation) {
  const auto start = [&](const Call& carried) {
    RoutedTransport& transport = transport_for(carried);
    operation.calls_program =
        carried.user != nullptr || transport.carrier() >= record::Carrier::first_of_program;
    return transport.start(carried);
  };
  try {
    if (size_ == 1 || !ScratchCall::is_needed(call)) return operation.begin(start(call));
    auto scratch = std::make_unique<ScratchCall>(call, self_, size_);
    auto pending = start(scratch->call());
    operation.begin(std::make_unique<PendingScratchCall>(std::move(scratch), std::move(pending)));
  } catch (...) {
    // Without a guard that has given up, the call was refused before any member went on.
    if (!connection_->guard().has_ended()) throw;
    // The wait tells the other members, and breaks the group.
    await(operation.point(),
          [failure = std::current_exception()]() -> bool { std::rethrow_exception(failure); });
  }
}

Work CallDispatcher::start(const Call& call, std::shared_ptr<void> kept,
                           std::function<void()> finish) {
  const CallLock lock{*runtime_};
  const CallRanges::ShownCall range{ranges(), name_, call.operation};
  Call started = of_caller(call);
  started.is_async = true;
  Work work;
  keeping_failure(started,
                  [&] { work = start_checked(started, std::move(kept), std::move(finish)); });
  return work;
}

Work CallDispatcher::start_checked(const Call& call, std::shared_ptr<void> kept,
                                   std::function<void()> finish) {
  RoutedTransport* const on_device = check(call);
  const bool is_batched = runtime_->batch.is_open();
  if (on_device != nullptr && is_batched)
    throw UsageError{fmt::format("{}.{}_async inside an NcclGroup", name_, function_of(call)),
                     "use the form without _async: operations of a batch are always asynchronous"};
  if (is_batched) runtime_->batch.reserve_memory(call, *this);
  auto operation = std::make_shared<AsyncOperation>();
  const std::uint64_t number = next_number(call);
  operation->connection = connection_;
  operation->describe = describing(call, number);
  operation->stream = call.stream;
  operation->is_on_device = on_device != nullptr;
  operation->is_message = is_point_to_point(call.operation) && on_device == nullptr;
  operation->is_receive = call.operation == Operation::recv && on_device == nullptr;
  operation->is_from_itself = operation->is_receive && call.source == self_;
  operation->is_deferred = is_batched;
  operation->source = call.source;
  operation->tag = call.tag;
  operation->kept = std::move(kept);
  operation->finish = std::move(finish);
  constexpr std::uint64_t bits = record::format::async_bit;
  operation->recorded = on_device != nullptr ? record_on_device(call, *on_device, bits)
                                             : record(call, number, transport_for(call), bits);
  if (operation->is_message) connection_->messages.add(call);
  if (is_batched) {
    runtime_->batch.defer({call, *this, connection_->group.place, operation});
    return Work{std::move(operation), runtime_};
  }
  if (on_device != nullptr)
    start_on_device(call, *on_device, *operation);
  else
    start_on_host(call, *operation);
  if (on_device != nullptr && on_device == connection_->device() &&
      device::is_in_capture(call.stream))
    runtime_->in_flight.add_captured(*operation);
  else
    runtime_->in_flight.add(operation);
  return Work{std::move(operation), runtime_};
}

RouteExplanation CallDispatcher::explain(const Call& call, bool capture) const {
  std::string why_no_device = runtime_->why_no_device;
  if (why_no_device.empty()) why_no_device = "its NCCL communicator is not open";
  const auto of = [&](const Call& form) {
    return router_.explain(runtime_->route_rules, connection_->host(), connection_->device(), form,
                           capture, why_no_device);
  };
  RouteExplanation explanation = of(call);
  Call started = call;
  started.is_async = true;
  if (RouteExplanation async = of(started); async.transport != explanation.transport)
    explanation.async_form.push_back(std::move(async));
  return explanation;
}

}  // namespace rankmesh::detail
