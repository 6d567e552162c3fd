// SPDX-License-Identifier: BSD-3-Clause
#include "transport/detail/local_transport.hpp"

#include <cstring>

#include <fmt/format.h>

#include "detail/call_errors.hpp"
#include "detail/clear_output.hpp"
#include "detail/published_call.hpp"
#include "shm/inbox.hpp"

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

UsageError never_sent(const std::string& activity) {
  return UsageError{
      fmt::format("{} would wait for ever: the caller has sent no such message", activity),
      "send it first: send and send_async do not wait for the receive"};
}

// A message of a member to itself, or both messages of a send_recv. A message for which no receive
// waits is copied, so a send never waits.
class LocalTransport::MessageToItself final : public Pending {
 public:
  MessageToItself(const Call& call, shm::Inbox& inbox) : inbox_{inbox} {
    receive_.envelope = {call.out.count, call.tag, call.out.type};
    receive_.target = call.out.data;
    receive_.is_complete = call.operation == Operation::send;
    // The receive comes first, so that the message needs no memory in between. If an earlier
    // message is there, the receive gets that one, maybe into the memory that is sent.
    const bool sends_first = inbox.arrived(call.tag).has_value();
    if (!receive_.is_complete && !sends_first) receive();
    if (call.operation != Operation::recv) send({call.in.count, call.tag, call.in.type}, call.in);
    if (!receive_.is_complete && sends_first) receive();
  }
  ~MessageToItself() override { inbox_.cancel(receive_); }
  bool test() override {
    if (receive_.wrong)
      throw detail::WrongLength{fmt::format("received {}, but {} were expected",
                                            text_of(*receive_.wrong), text_of(receive_.envelope))};
    return receive_.is_complete || was_cancelled_;
  }
  [[nodiscard]] bool is_polled() const override { return false; }
  void cancel() override { was_cancelled_ = !receive_.is_complete; }
  [[nodiscard]] bool was_cancelled() const override { return was_cancelled_; }

 private:
  static void deliver(shm::Message& receive, const shm::Envelope& envelope, const std::byte* data) {
    if (receive.complete(envelope) && envelope.count > 0)
      std::memmove(receive.target, data, envelope.bytes());
  }
  void receive() {
    if (const auto early = inbox_.take_early(receive_.envelope.tag))
      deliver(receive_, early->envelope, early->bytes.data());
    else
      inbox_.wait(receive_);
  }
  void send(const shm::Envelope& envelope, const ConstBuffer& in) {
    if (shm::Message* const receive = inbox_.take_receive(envelope.tag))
      return deliver(*receive, envelope, in.data);
    shm::Inbox::Early& early = inbox_.keep(envelope, envelope.bytes());
    if (in.count > 0) std::memcpy(early.bytes.data(), in.data, envelope.bytes());
  }

  shm::Inbox& inbox_;
  shm::Message receive_;
  bool was_cancelled_ = false;
};

LocalTransport::LocalTransport() : inbox_{std::make_unique<shm::Inbox>()} {}
LocalTransport::~LocalTransport() = default;

bool LocalTransport::supports(const Call& call) const { return !call.is_on_device(); }

void LocalTransport::run(const Call& call, Waiter& waiter) {
  if (is_point_to_point(call.operation)) return run_message(call, waiter);
  ++calls_;
  if (waiter.publication == nullptr || waiter.publication->recording.record == nullptr)
    return carry(call);
  const detail::Recording& recording = waiter.publication->recording;
  // The call cannot wait, so no time is taken for it.
  record::format::Header& header = *recording.record;
  const std::uint64_t next = detail::next_of(header);
  record::format::Entry& entry =
      detail::add_entry(header, next, detail::describe_completely(call), recording.group | calls_);
  if (detail::is_sampled(header, next)) detail::take_time(header, entry);
  carry(call);
  detail::set_state(header, entry, record::State::ended);
}

void LocalTransport::run_message(const Call& call, Waiter& waiter) {
  detail::PublishedCall published{waiter, call, 0, carrier()};
  MessageToItself message{call, *inbox_};
  try {
    if (!message.test()) throw never_sent(waiter.activity_of(call));
  } catch (const detail::WrongLength& error) {
    error.throw_in(waiter.activity_of(call));
  }
  published.end();
}

std::optional<std::int64_t> LocalTransport::arrived(RankInGroup from, int tag) {
  (void)from;
  return inbox_->arrived(tag);
}

std::unique_ptr<Pending> LocalTransport::start(const Call& call) {
  if (is_point_to_point(call.operation)) return std::make_unique<MessageToItself>(call, *inbox_);
  ++calls_;
  carry(call);
  return std::make_unique<CompletedOperation>();
}

}  // namespace rankmesh
