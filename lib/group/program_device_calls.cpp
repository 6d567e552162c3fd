// SPDX-License-Identifier: BSD-3-Clause
// Runs calls on device memory that a transport of the program carries.
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "detail/call_dispatcher.hpp"
#include "rankmesh/base/error.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::detail {
namespace {

// Calls a transport of the program, and marks the group as broken if that fails.
template <class Action>
void breaking(Connection& connection, Action&& action) {
  try {
    action();
  } catch (const UsageError&) {
    throw;  // the transport has refused the arguments
  } catch (const Error& error) {
    connection.mark_broken(error);
    throw;
  } catch (const std::exception& error) {
    connection.mark_broken(Error{error.what()});
    throw;
  }
}

}  // namespace

// The rules are read for each call: the choices that the router keeps are for host memory.
Transport* CallDispatcher::program_transport(const Call& call) const {
  const HostTransports& transports = connection_->host();
  if (!transports.has_program_transports) return nullptr;
  const RouteExplanation route =
      router_.explain(runtime_->route_rules, transports, connection_->device(), call, false, "no");
  return route.transport.empty() ? nullptr : transports.find(route.transport);
}

void CallDispatcher::run_on_program_device(const Call& call, Transport& transport) {
  if (runtime_->batch.is_open())
    throw UsageError{fmt::format("{}.{} inside an NcclGroup, but the transport '{}' carries it",
                                 name_, to_string(call.operation), transport.name()),
                     "issue the call outside the NcclGroup"};
  finish(start_comparison(call));
  const std::uint64_t number =
      is_point_to_point(call.operation) ? 0 : connection_->next_device_call();
  RecordedCall recorded{connection_->recordings.device, describe_completely(call), number,
                        transport.carrier(), record::State::inside};
  breaking(*connection_, [&] { transport.run(call, *this); });
  recorded.end();  // it is queued
}

void CallDispatcher::start_on_program_device(const Call& call, Transport& transport,
                                             AsyncOperation& operation) {
  if (runtime_->batch.is_open())
    throw UsageError{
        fmt::format("{}.{}_async inside an NcclGroup", name_, to_string(call.operation)),
        "issue the call outside the NcclGroup"};
  finish(start_comparison(call));
  const std::uint64_t number =
      is_point_to_point(call.operation) ? 0 : connection_->next_device_call();
  operation.recorded = {
      connection_->recordings.device, describe_completely(call), number, transport.carrier(),
      record::State::inside,          record::format::async_bit};
  operation.is_on_device = true;
  breaking(*connection_, [&] { operation.pending = transport.start(call); });
}

}  // namespace rankmesh::detail
