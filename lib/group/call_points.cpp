// SPDX-License-Identifier: BSD-3-Clause
// How calls appear to other ranks: their wait points and their entries in the record.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/call_dispatcher.hpp"
#include "rankmesh/base/hash.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::detail {
namespace {

// Returns the wait point of a message. Both ends compute the same key, so the wait monitor
// recognises a peer that waits for the other half of the message.
WaitPoint message_point(const std::string& name, const GroupDescription& group,
                        const std::string& identity, const Call& call, RankInGroup self) {
  const auto rank = [&](RankInGroup member) {
    return static_cast<int>(group.ranks.at(member.value()).value());
  };
  if (call.operation == Operation::send_recv) {
    std::vector<int> peers{rank(call.destination)};
    if (call.source != call.destination) peers.push_back(rank(call.source));
    return WaitPoint::of(std::move(peers),
                         fmt::format("{}.send_recv to rank {} from rank {}", name,
                                     rank(call.destination), rank(call.source)),
                         fmt::format("{}|exchange|{}", identity, call.tag));
  }
  const bool sends = call.operation == Operation::send;
  const RankInGroup from = sends ? self : call.source;
  const RankInGroup to = sends ? call.destination : self;
  return WaitPoint::of({rank(from), rank(to)},
                       fmt::format("{}.{} {} rank {} (tag {})", name, to_string(call.operation),
                                   sends ? "to" : "from", rank(sends ? to : from), call.tag),
                       fmt::format("{}|{}>{}|{}", identity, from.value(), to.value(), call.tag));
}

}  // namespace

WaitPoint CallDispatcher::point_of_message(const Call& call) const {
  const GroupDescription& group = connection_->group;
  return message_point(name_, group, group.identity + "|" + group.ranks.to_string(), call, self_);
}

std::string CallDispatcher::activity_of(const Call& call) const {
  return is_point_to_point(call.operation)
             ? point_of_message(call).activity
             : collective_point(call, connection_->last_call()).activity;
}

// Calls on device memory have numbers of their own. The calls of an open batch come before a new
// one.
std::uint64_t CallDispatcher::next_number(const Call& call) const {
  if (is_point_to_point(call.operation)) return 0;
  return call.is_on_device()
             ? connection_->last_device_call() + 1
             : connection_->last_call() + runtime_->batch.calls_of(*connection_) + 1;
}

WaitPoint CallDispatcher::point_of(const Call& call, std::uint64_t number) const {
  WaitPoint point =
      is_point_to_point(call.operation) ? point_of_message(call) : collective_point(call, number);
  point.is_call = true;
  return point;
}

// All members that wait in this operation compute the same key.
WaitPoint CallDispatcher::collective_point(const Call& call, std::uint64_t number) const {
  const GroupDescription& group = connection_->group;
  const CallDescriptor descriptor = describe(call, call.operation);
  const std::string identity = group.identity + "|" + group.ranks.to_string();
  WaitPoint point = WaitPoint::of(
      group.ranks, fmt::format("{}, call {}", rankmesh::to_string(descriptor, name_), number),
      fmt::format("{}|{}{}", identity, call.is_on_device() ? "device|" : "", number));
  // The group is broken after a failure. An adopted communicator may be adopted again under the
  // same name.
  if (!group.is_adopted) point.scope = hash_bytes(identity).low;
  return point;
}

RecordedCall CallDispatcher::record(const Call& call, std::uint64_t number,
                                    const Transport& transport, std::uint64_t bits) const {
  return {connection_->recordings.host, describe_completely(call), number,
          transport.carrier(),          record::State::issued,     bits};
}

}  // namespace rankmesh::detail
