// SPDX-License-Identifier: BSD-3-Clause
// How calls appear to other ranks: their wait points and their entries in the record.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/call_dispatcher.hpp"
#include "rankmesh/base/hash.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::detail {
namespace {

// The two ends of a message, as one of them sees them.
struct MessageEnds {
  explicit MessageEnds(const Call& call)
      : operation{call.operation},
        tag{call.tag},
        destination{call.destination},
        source{call.source} {}
  Operation operation;
  int tag;
  RankInGroup destination, source;
};

std::string identity_of(const GroupDescription& group) {
  return group.identity + "|" + group.ranks.to_string();
}

// Returns the wait point of a message. Both ends compute the same key, so the wait monitor
// recognises a peer that waits for the other half of the message.
WaitPoint message_point(const std::string& name, const GroupDescription& group,
                        const MessageEnds& ends, RankInGroup self) {
  const std::string identity = identity_of(group);
  const auto rank = [&](RankInGroup member) {
    return static_cast<int>(group.ranks.at(member.value()).value());
  };
  if (ends.operation == Operation::send_recv) {
    std::vector<int> peers{rank(ends.destination)};
    if (ends.source != ends.destination) peers.push_back(rank(ends.source));
    return WaitPoint::of(std::move(peers),
                         fmt::format("{}.send_recv to rank {} from rank {}", name,
                                     rank(ends.destination), rank(ends.source)),
                         fmt::format("{}|exchange|{}", identity, ends.tag));
  }
  const bool sends = ends.operation == Operation::send;
  const RankInGroup from = sends ? self : ends.source;
  const RankInGroup to = sends ? ends.destination : self;
  return WaitPoint::of({rank(from), rank(to)},
                       fmt::format("{}.{} {} rank {} (tag {})", name, to_string(ends.operation),
                                   sends ? "to" : "from", rank(sends ? to : from), ends.tag),
                       fmt::format("{}|{}>{}|{}", identity, from.value(), to.value(), ends.tag));
}

// Returns the call that the program made.
const Call& of_program(const Call& call) {
  return call.original == nullptr ? call : *call.original;
}

// A collective, and its number among those of its group.
struct NumberedCall {
  NumberedCall(const Call& call, std::uint64_t count)
      : descriptor{describe(of_program(call), call.operation)},
        number{count},
        is_on_device{call.is_on_device()} {}
  CallDescriptor descriptor;
  std::uint64_t number;
  bool is_on_device;
};

// All members that wait in this operation compute the same key.
WaitPoint point_of_collective(const std::string& name, const GroupDescription& group,
                              const NumberedCall& call) {
  const std::string identity = identity_of(group);
  WaitPoint point = WaitPoint::of(
      group.ranks,
      fmt::format("{}, call {}", rankmesh::to_string(call.descriptor, name), call.number),
      fmt::format("{}|{}{}", identity, call.is_on_device ? "device|" : "", call.number));
  // The group is broken after a failure. An adopted communicator may be adopted again under the
  // same name.
  if (!group.is_adopted) point.scope = group.key();
  return point;
}

WaitPoint in_call(WaitPoint point) {
  point.is_call = true;
  return point;
}

}  // namespace

WaitPoint CallDispatcher::point_of_message(const Call& call) const {
  return message_point(name_, connection_->group, MessageEnds{call}, self_);
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
  return describing(call, number)(connection_->group);
}

std::function<WaitPoint(const GroupDescription&)> CallDispatcher::describing(
    const Call& call, std::uint64_t number) const {
  if (is_point_to_point(call.operation))
    return [name = name_, self = self_, ends = MessageEnds{call}](const GroupDescription& group) {
      return in_call(message_point(name, group, ends, self));
    };
  return [name = name_, numbered = NumberedCall{call, number}](const GroupDescription& group) {
    return in_call(point_of_collective(name, group, numbered));
  };
}

WaitPoint CallDispatcher::collective_point(const Call& call, std::uint64_t number) const {
  return point_of_collective(name_, connection_->group, NumberedCall{call, number});
}

RecordedCall CallDispatcher::record(const Call& call, std::uint64_t number,
                                    const RoutedTransport& transport, std::uint64_t bits) const {
  return {connection_->recordings.host, describe_completely(call), number,
          transport.carrier(),          record::State::issued,     bits};
}

}  // namespace rankmesh::detail
