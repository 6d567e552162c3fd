// SPDX-License-Identifier: BSD-3-Clause
// Runs calls on device memory, and issues the calls of a batch.
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "detail/call_dispatcher.hpp"
#include "rankmesh/base/error.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::detail {

DeviceTransport& CallDispatcher::device(std::string_view operation) const {
  if (DeviceTransport* device = connection_->device()) return *device;
  const std::string& why = runtime_->why_no_device;
  if (!why.empty())
    throw NoDeviceError{fmt::format("{}.{} on device memory: there is no device transport: {}",
                                    name_, operation, why),
                        "use host memory, or a machine with CUDA and NCCL"};
  if (connection_->group.families.empty())
    throw NoDeviceError{
        fmt::format("{}.{} on device memory: the group was adopted without an NCCL communicator",
                    name_, operation),
        "also pass an ncclComm_t to adopt(), or use host memory"};
  throw NoDeviceError{
      fmt::format("{}.{} on device memory: its NCCL communicator is not open", name_, operation),
      fmt::format("open it with mesh.open({{\"{}\"}}), or remove the option 'lazy'", name_)};
}

// Runs an action, and marks the group as broken if it fails: NCCL cannot use a communicator again
// after an error, and a transport of the program may have reached only some members.
template <class Action>
void CallDispatcher::breaking_on_failure(Action&& action) {
  try {
    action();
  } catch (const UsageError&) {
    throw;  // thrown before the transport has issued anything
  } catch (const UnsupportedError&) {
    throw;
  } catch (const Error& error) {
    connection_->mark_broken(error);
    throw;
  }
}

void CallDispatcher::wait_for_stream(StreamRef stream) {
  DeviceTransport* transport = nullptr;
  {
    const CallLock lock{*runtime_};
    require_open("wait for the stream before close()");
    transport = &device("wait");
  }
  // The mesh is free meanwhile, so that its operations on host memory make progress.
  LossWatch::Waiting waiting;
  const auto look = [&] {
    runtime_->control->look_for_losses(waiting, [&] { return connection_->group.ranks_of_mesh(); });
  };
  finding_losses(*runtime_, [&] {
    breaking_on_failure(
        [&] { transport->wait(stream, Deadline{connection_->group.timeout}, look); });
  });
}

// Returns the transport of the program that carries a call; null if NCCL does. The rules are read
// for each call: the choices that the router keeps are for host memory.
RoutedTransport* CallDispatcher::program_transport(const Call& call) const {
  const HostTransports& transports = connection_->host();
  if (!transports.has_program_transports) return nullptr;
  const RouteExplanation route =
      router_.explain(runtime_->route_rules, transports, connection_->device(), call, false, "no");
  return route.transport.empty() ? nullptr : transports.find(route.transport);
}

void CallDispatcher::run_on_device(const Call& call, RoutedTransport& transport) {
  const bool is_nccl = &transport == connection_->device();
  if (!runtime_->batch.is_open()) {
    compare_on_device(call, transport);
    RecordedCall recorded = record_on_device(call, transport, 0);
    breaking_on_failure([&] { transport.run(call, *this); });
    if (is_nccl) return follow(std::move(recorded), call.stream, call.operation);
    return recorded.end();  // it is queued
  }
  if (!is_nccl)
    throw UsageError{fmt::format("{}.{} inside an NcclGroup, but the transport '{}' carries it",
                                 name_, to_string(call.operation), transport.name()),
                     "issue the call outside the NcclGroup"};
  if (call.rows != 1 && size_ > 1)
    throw UsageError{
        fmt::format("{}.{} along an axis other than the first inside an NcclGroup", name_,
                    to_string(call.operation)),
        "issue the call outside the NcclGroup: it consists of a collective and a copy"};
  transport.validate(call);
  runtime_->batch.reserve_memory(call, *this);
  runtime_->batch.defer({call, *this, connection_->group.place, nullptr});
}

void CallDispatcher::start_on_device(const Call& call, RoutedTransport& transport,
                                     AsyncOperation& operation) {
  const bool is_nccl = &transport == connection_->device();
  Call compared = call;  // NCCL gets the call on the group's own stream
  if (is_nccl && connection_->guard().compares_on_device)
    compared.stream = connection_->device()->stream();
  compare_on_device(compared, transport);
  breaking_on_failure([&] { operation.pending = transport.start(call); });
  if (is_nccl) watch_own_stream(call.operation);
}

// The event of an asynchronous operation belongs to the thread that uses the mesh, so the watch
// needs another one.
void CallDispatcher::watch_own_stream(Operation operation) {
  if (runtime_->device_watch != nullptr) follow({}, connection_->device()->stream(), operation);
}

void CallDispatcher::issue_together(const std::vector<Call>& calls) {
  std::vector<DeferredCall> deferred;
  deferred.reserve(calls.size());
  for (const Call& call : calls)
    deferred.emplace_back(call, *this, connection_->group.place, nullptr);
  runtime_->batch.issue_together(std::move(deferred), Deadline{connection_->group.timeout});
}

Work CallDispatcher::start(const SequenceDescription& description, StreamRef stream,
                           std::shared_ptr<DeviceSequence> sequence) {
  const CallLock lock{*runtime_};
  require_no_batch(description.function);
  DeviceTransport& transport = device(description.function);
  std::vector<int> peers;
  for (const RankInGroup peer : sequence->peers())
    peers.push_back(static_cast<int>(connection_->group.ranks.at(peer.value()).value()));
  auto operation = std::make_shared<AsyncOperation>();
  operation->connection = connection_;
  operation->describe = [point = point_of(description, std::move(peers))](const GroupDescription&) {
    return point;
  };
  operation->stream = stream;
  operation->is_on_device = true;
  transport.validate({.operation = Operation::send, .stream = transport.stream()});
  const auto queue = [&](StreamRef own) {
    try {
      sequence->queue(own, [&](const std::vector<Call>& calls) { issue_together(calls); });
    } catch (const Error& error) {
      connection_->mark_broken(error);  // peers may have taken what was issued before
      runtime_->last_failure = error.message();
      throw;
    }
  };
  operation->pending =
      finding_losses(*runtime_, [&] { return transport.queue_after(stream, queue); });
  runtime_->in_flight.add(operation);
  watch_own_stream(Operation::send);
  return Work{std::move(operation), runtime_};
}

CallDispatcher::Comparison CallDispatcher::start_comparison(const Call& call) {
  const GroupGuard& guard = connection_->guard();
  if (!guard.compares_on_device) return {};
  CallGuard& of_call = *guard.of(call);
  const bool is_message = is_point_to_point(call.operation);
  WaitPoint point = point_of(call, is_message ? 0 : of_call.calls() + 1);
  return {std::move(point), of_call.start_comparison(call, {})};
}

void CallDispatcher::compare_on_device(const Call& call, const RoutedTransport& transport) {
  if (!connection_->guard().compares_on_device) return;
  if (call.rows == 1) transport.validate(call);  // before the others are waited for
  finish(start_comparison(call));
}

void CallDispatcher::finish(const Comparison& comparison) {
  if (comparison.pending == nullptr) return;
  await(comparison.point, [&] { return comparison.pending->test(); });
}

RecordedCall CallDispatcher::issue(const DeferredCall& deferred) {
  const Call& call = deferred.call();
  const std::shared_ptr<AsyncOperation>& operation = deferred.operation();
  const CallRanges::ShownCall range{runtime_->ranges(), name_, call.operation};
  if (operation == nullptr) {
    DeviceTransport& device = *connection_->device();
    RecordedCall recorded = record_on_device(call, device, 0);
    breaking_on_failure([&] { device.run(call, *this); });
    return recorded;
  }
  operation->is_deferred = false;
  try {
    start_on_host(call, *operation);
  } catch (const std::bad_alloc&) {
    out_of_memory(call, operation->point());
  }
  runtime_->in_flight.add(operation);
  return {};
}

void CallDispatcher::follow(RecordedCall recorded, StreamRef stream, Operation operation) {
  const DeviceWatch* const watch = runtime_->device_watch.get();
  if (connection_->recordings.device.record == nullptr && watch == nullptr) return;
  runtime_->device_calls.follow(
      std::move(recorded), connection_->device()->end_of(stream), stream,
      watch != nullptr ? watch->note(connection_, operation) : IssuedOnDevice{});
}

RecordedCall CallDispatcher::record_on_device(const Call& call, const RoutedTransport& transport,
                                              std::uint64_t bits) {
  const bool is_message = is_point_to_point(call.operation);
  return {connection_->recordings.device,
          describe_completely(call),
          is_message ? 0 : connection_->next_device_call(),
          transport.carrier(),
          record::State::inside,
          bits};
}

}  // namespace rankmesh::detail
