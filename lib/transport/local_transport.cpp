// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/local_transport.hpp"

#include <cstring>

#include <fmt/format.h>

#include "detail/clear_output.hpp"
#include "detail/own_messages.hpp"
#include "detail/record_call.hpp"

namespace rankmesh {
namespace {

class CompletedOperation final : public Pending {
 public:
  bool test() override { return true; }
  [[nodiscard]] bool is_polled() const override { return false; }
};

void carry(const Call& call) {
  if (facts_of(call.operation).excludes_own) return detail::clear_output(call);
  const LocalCopy copy = local_copy(call);
  if (copy.out.count > 0)
    std::memcpy(copy.out.data, copy.in.data, static_cast<std::size_t>(copy.out.bytes()));
}

}  // namespace

LocalCopy local_copy(const Call& call) {
  LocalCopy copy{block_of(call.in, call.in_blocks, 0), block_of(call.out, call.out_blocks, 0)};
  if (copy.in.data == nullptr || copy.out.data == nullptr || copy.in.data == copy.out.data)
    copy.out.count = 0;
  return copy;
}

// A message of a member to itself, or both messages of a send_recv.
class LocalTransport::PendingMessage final : public Pending {
 public:
  PendingMessage(const Call& call, detail::OwnMessages& messages)
      : messages_{messages}, receive_{.out = call.out, .tag = call.tag} {
    // If nothing else has the tag, the message needs no memory in between.
    const bool is_direct = call.operation == Operation::send_recv && !messages.has_any(call.tag);
    if (is_direct) messages.begin(receive_);
    if (call.operation != Operation::recv) messages.send(call.in, call.tag);
    if (call.operation == Operation::send) receive_.is_complete = true;
    if (call.operation != Operation::send && !is_direct) messages.begin(receive_);
  }
  ~PendingMessage() override {
    if (!receive_.is_complete) messages_.withdraw(receive_);
  }
  bool test() override {
    if (receive_.wrong) throw detail::WrongLength{*receive_.wrong};
    return receive_.is_complete || was_cancelled_;
  }
  [[nodiscard]] bool is_polled() const override { return false; }
  void cancel() override { was_cancelled_ = !receive_.is_complete; }
  [[nodiscard]] bool was_cancelled() const override { return was_cancelled_; }

 private:
  detail::OwnMessages& messages_;
  detail::OwnMessages::Receive receive_;
  bool was_cancelled_ = false;
};

LocalTransport::LocalTransport() : messages_{std::make_unique<detail::OwnMessages>()} {}
LocalTransport::~LocalTransport() = default;

bool LocalTransport::supports(const Call& call) const {
  return call.in.kind == MemoryKind::host && call.out.kind == MemoryKind::host;
}

void LocalTransport::run(const Call& call, Waiter& waiter) {
  if (is_point_to_point(call.operation)) return run_message(call, waiter);
  if (waiter.recording == nullptr || waiter.recording->record == nullptr) return carry(call);
  // The call cannot wait, so no time is taken for it.
  record::format::Header& header = *waiter.recording->record;
  const std::uint64_t next = detail::next_of(header);
  record::format::Entry& entry = detail::add_entry(header, next, detail::describe_completely(call),
                                                   waiter.recording->group | ++calls_);
  if (detail::is_sampled(header, next)) detail::take_time(header, entry);
  carry(call);
  detail::set_state(header, entry, record::State::ended);
}

void LocalTransport::run_message(const Call& call, Waiter& waiter) {
  detail::RecordedCall recorded = detail::record_call(waiter, call, 0, carrier());
  PendingMessage message{call, *messages_};
  try {
    if (!message.test())
      throw UsageError{fmt::format("{} would wait for ever: the caller has sent no such message",
                                   waiter.activity_of(call)),
                       "send it first: send and send_async do not wait for the receive"};
  } catch (const detail::WrongLength& error) {
    error.throw_in(waiter.activity_of(call));
  }
  recorded.end();
}

std::optional<std::int64_t> LocalTransport::arrived(RankInGroup from, int tag) {
  (void)from;
  return messages_->arrived(tag);
}

std::unique_ptr<Pending> LocalTransport::start(const Call& call) {
  if (is_point_to_point(call.operation)) return std::make_unique<PendingMessage>(call, *messages_);
  carry(call);
  return std::make_unique<CompletedOperation>();
}

}  // namespace rankmesh
