// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members in shared memory: how a call waits for them.
#include <sched.h>

#include <string>
#include <utility>

#include <fmt/format.h>

#include "detail/record_call.hpp"
#include "detail/shm_transport.hpp"
#include "detail/wrong_length.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

// As for collectives, see shm_transport.cpp.
constexpr int yields_of_messages = 200;

shm::Envelope envelope_of(const Call& call, std::int64_t count, DataType type) {
  return {count, call.tag, static_cast<std::uint16_t>(type), 0};
}

std::string text_of(const shm::Envelope& envelope) {
  return fmt::format("{} x {}", envelope.count, to_string(static_cast<DataType>(envelope.type)));
}

}  // namespace

// What a call sends and what it receives. It must not move while a message is under way.
struct ShmTransport::Halves {
  explicit Halves(const Call& call)
      : sends{call.operation != rankmesh::Operation::recv},
        receives{call.operation != rankmesh::Operation::send} {
    if (sends) {
      out.peer = static_cast<std::size_t>(call.destination.value());
      out.envelope = envelope_of(call, call.in.count, call.in.type);
      out.source = call.in.data;
    }
    if (receives) {
      in.peer = static_cast<std::size_t>(call.source.value());
      in.envelope = envelope_of(call, call.out.count, call.out.type);
      in.target = call.out.data;
    }
    out.is_complete = !sends;
    in.is_complete = !receives;
  }
  [[nodiscard]] bool are_complete() const { return out.is_complete && in.is_complete; }
  // Throws if the message has another type or length than the receive. Both have ended then.
  void check() const {
    if (!in.wrong) [[likely]]
      return;
    const auto received = static_cast<std::int64_t>(shm::Message::bytes_of(*in.wrong));
    const auto expected = static_cast<std::int64_t>(in.bytes());
    if (received != expected) throw detail::WrongLength{received, expected};
    throw detail::WrongLength{
        fmt::format("received {}, but {} were expected", text_of(*in.wrong), text_of(in.envelope))};
  }

  bool sends, receives;
  shm::Message out, in;
};

// A message in flight, or both messages of a send_recv.
class ShmTransport::PendingMessage final : public Pending {
 public:
  PendingMessage(ShmTransport& transport, const Call& call) : transport_{transport}, halves_{call} {
    transport_.throw_if_ended();
    if (halves_.receives) transport_.messages_->begin_receive(halves_.in);
    if (halves_.sends) transport_.messages_->begin_send(halves_.out);
  }
  ~PendingMessage() override {
    // Messages refer to this object and to buffers of the program that may end.
    if (!halves_.are_complete() && !was_cancelled_) transport_.messages_->give_up();
  }
  bool test() override {
    if (was_cancelled_) return true;
    if (!transport_.try_to_complete(halves_)) return false;
    halves_.check();
    return true;
  }
  void cancel() override {
    if (!halves_.sends) was_cancelled_ = transport_.messages_->cancel(halves_.in);
  }
  [[nodiscard]] bool was_cancelled() const override { return was_cancelled_; }

 private:
  ShmTransport& transport_;
  Halves halves_;
  bool was_cancelled_ = false;
};

std::unique_ptr<Pending> ShmTransport::start_message(const Call& call) {
  return std::make_unique<PendingMessage>(*this, call);
}

std::optional<std::int64_t> ShmTransport::arrived(RankInGroup from, int tag) {
  throw_if_ended();
  if (messages_ == nullptr) return std::nullopt;
  return messages_->arrived(static_cast<std::size_t>(from.value()), tag);
}

void ShmTransport::run_message(const Call& call, Waiter& waiter) {
  detail::RecordedCall recorded = detail::record_call(waiter, call, 0, carrier());
  throw_if_ended();
  Halves halves{call};
  shm::Messages& messages = *messages_;
  if (halves.sends) halves.out.is_complete = messages.try_send(halves.out);
  if (halves.receives && halves.out.is_complete && messages.is_first(halves.in.peer)) {
    for (int i = 0; i < pauses_ && !messages.has_part(halves.in.peer); ++i) shm::pause();
    (void)messages.try_receive(halves.in);
  }
  if (!halves.are_complete()) poll(halves, call, waiter);
  try {
    halves.check();
  } catch (const detail::WrongLength& error) {
    error.throw_in(waiter.activity_of(call));
  }
  recorded.end();
}

// Waits for messages, some of which have not begun.
void ShmTransport::poll(Halves& halves, const Call& call, Waiter& waiter) {
  shm::Messages& messages = *messages_;
  try {
    if (!halves.in.is_complete) messages.begin_receive(halves.in);
    if (!halves.out.is_complete) messages.begin_send(halves.out);
    for (int i = 0; i < pauses_ && !halves.are_complete() && !engine_.is_halted(); ++i) {
      shm::pause();
      messages.advance();
    }
    for (int i = 0; i < yields_of_messages; ++i) {
      if (try_to_complete(halves)) return;
      sched_yield();
    }
    waiter.wait(call, 0, [&] { return try_to_complete(halves); }, {});
  } catch (const Error& error) {
    give_up(error);
    throw;
  } catch (...) {
    messages.give_up();  // `halves` goes out of scope
    throw;
  }
}

// Makes progress, and returns whether the messages are complete. Throws if they never will be.
bool ShmTransport::try_to_complete(const Halves& halves) {
  if (halves.are_complete()) return true;
  messages_->advance();
  if (halves.are_complete()) return true;
  if (!halves.out.is_complete) messages_->make_space();
  throw_if_ended();
  throw_if_unreadable(messages_->failed_read());
  return false;
}

}  // namespace rankmesh
