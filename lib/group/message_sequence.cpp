// SPDX-License-Identifier: BSD-3-Clause
#include "detail/message_sequence.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/detail/private_api.hpp"
#include "detail/call_dispatcher.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::detail {
namespace {

// A message and its entry in the record.
class RecordedMessage final : public Pending {
 public:
  RecordedMessage(RecordedCall recorded, std::unique_ptr<Pending> message)
      : recorded_{std::move(recorded)}, message_{std::move(message)} {}
  bool test() override {
    if (!message_->test()) return false;
    recorded_.end();
    return true;
  }
  [[nodiscard]] bool is_in_mpi() const override { return message_->is_in_mpi(); }

 private:
  RecordedCall recorded_;
  std::unique_ptr<Pending> message_;
};

// MPI carries the messages of every group, including groups inside a node.
RoutedTransport* carrier_of(const Connection& connection) { return connection.host().find("mpi"); }

}  // namespace

RANKMESH_PRIVATE_API std::unique_ptr<Pending> SequenceMessages::start(Call call) const {
  call.is_async = true;
  call.name_index = name_index_;
  RoutedTransport& transport = *carrier_of(*connection_);
  RecordedCall recorded{
      connection_->recordings.host, describe_completely(call), 0,
      transport.carrier(),          record::State::issued,     record::format::async_bit};
  return std::make_unique<RecordedMessage>(std::move(recorded), transport.start(call));
}

bool CallDispatcher::is_usable() const {
  return !runtime_->is_closed && !connection_->is_closed() && connection_->is_usable();
}

void CallDispatcher::throw_unusable(std::string_view function) const {
  if (runtime_->is_closed || connection_->is_closed())
    throw ClosedError{fmt::format("{}.{} is called after close()", name_, function),
                      runtime_->is_closed ? "close the mesh after its last operation"
                                          : "close the group after its last operation"};
  throw ClosedError{
      fmt::format("{}.{}: the group is broken: {}", name_, function, connection_->why_unusable()),
      "end the program, or open a new mesh on the ranks that are left"};
}

void CallDispatcher::require_no_batch(std::string_view function) const {
  runtime_->throw_if_lost();
  if (!is_usable()) throw_unusable(function);
  if (runtime_->batch.is_open())
    throw UsageError{fmt::format("{}.{} inside an NcclGroup", name_, function),
                     "end the NcclGroup first: this operation is not part of it"};
}

WaitPoint CallDispatcher::point_of(const SequenceDescription& description,
                                   std::vector<int> members) const {
  const GroupDescription& group = connection_->group;
  const std::string identity = group.identity + "|" + group.ranks.to_string();
  WaitPoint point = WaitPoint::of(std::move(members), description.activity,
                                  fmt::format("{}|{}", identity, description.identity));
  if (!group.is_adopted) point.scope = group.key();
  return point;
}

// Makes the operation of a sequence.
std::shared_ptr<AsyncOperation> CallDispatcher::operation_of(
    const SequenceDescription& description, std::unique_ptr<MessageSequence> sequence) const {
  auto operation = std::make_shared<AsyncOperation>();
  operation->connection = connection_;
  // Each wait adds the members for which it waits.
  operation->describe = [point = point_of(description, {})](const GroupDescription&) {
    return point;
  };
  operation->sequence = sequence.get();
  operation->is_polled = true;
  operation->calls_program = sequence->calls_program();
  operation->pending = std::move(sequence);
  return operation;
}

Work CallDispatcher::start(const SequenceDescription& description,
                           std::unique_ptr<MessageSequence> sequence) {
  const CallLock lock{*runtime_};
  require_no_batch(description.function);
  auto operation = operation_of(description, std::move(sequence));
  runtime_->in_flight.add(operation);
  try {
    (void)runtime_->in_flight.test(*operation);  // starts the first messages
  } catch (const Error& error) {
    runtime_->last_failure = error.message();
    throw;
  }
  return Work{std::move(operation), runtime_};
}

}  // namespace rankmesh::detail
