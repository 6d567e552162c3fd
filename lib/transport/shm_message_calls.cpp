// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members in shared memory: how a call is carried and waits.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/detail/pause.hpp"
#include "detail/call_errors.hpp"
#include "detail/published_call.hpp"
#include "detail/shm_transport.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {

std::string shm::text_of(const Envelope& envelope) {
  return fmt::format("{} x {}", envelope.count, to_string(envelope.type));
}

namespace {

using detail::WrongLength;

}  // namespace

// What a call sends and what it receives. It must not move while a message is in flight.
struct ShmTransport::Halves {
  explicit Halves(const Call& call)
      : sends{call.operation != rankmesh::Operation::recv},
        receives{call.operation != rankmesh::Operation::send} {
    if (sends) {
      out.peer = static_cast<std::size_t>(call.destination.value());
      out.envelope = {call.in.count, call.tag, call.in.type};
      out.source = call.in.data;
    }
    if (receives) {
      in.peer = static_cast<std::size_t>(call.source.value());
      in.envelope = {call.out.count, call.tag, call.out.type};
      in.target = call.out.data;
    }
    out.is_complete = !sends;
    in.is_complete = !receives;
  }
  [[nodiscard]] bool are_complete() const { return out.is_complete && in.is_complete; }
  [[nodiscard]] bool are_large() const { return out.is_large() || in.is_large(); }

  bool sends, receives;
  shm::Message out, in;
};

// A message in flight, or both messages of a send_recv. MPI carries the elements of large messages.
// The receive of a blocking call begins when the message has been announced, so nothing is left in
// MPI if no message arrives. The receive of an asynchronous call begins at once, so that MPI makes
// progress in the program's own calls, too.
class ShmTransport::PendingMessage final : public Pending {
 public:
  PendingMessage(ShmTransport& transport, const Call& call, const Halves& halves)
      : transport_{transport}, call_{call}, halves_{halves} {
    shm::Messages& messages = *transport_.messages_;
    // The receive begins first, because it takes messages out of the ring.
    if (!halves_.in.is_complete) messages.begin_receive(halves_.in);
    if (!halves_.out.is_complete) messages.begin_send(halves_.out);
    must_receive_ = halves_.receives && halves_.in.is_large() && !messages.crossing();
    try {
      if (halves_.sends && halves_.out.is_large()) large_out_ = begin(rankmesh::Operation::send);
      if (call.is_async) begin_large_receive();
    } catch (const Error& error) {
      transport_.give_up(error);  // the messages in shared memory refer to this object
      throw;
    }
  }
  ~PendingMessage() override {
    // Messages refer to this object and to buffers of the program that may end.
    if (!halves_.are_complete() && !was_cancelled_) transport_.messages_->give_up();
  }

  bool test() override {
    if (was_cancelled_) return true;
    if (!advance()) {
      transport_.throw_if_ended();
      return false;
    }
    if (!was_cancelled_) check();
    return true;
  }
  [[nodiscard]] bool is_in_mpi() const override {
    return large_in_ != nullptr || large_out_ != nullptr;
  }
  void advance_beside_mpi() override { transport_.messages_->advance(); }
  void cancel() override {
    if (halves_.sends) return;
    transport_.messages_->advance();
    if (halves_.in.is_complete) return;  // the message has arrived, or has been announced
    if (large_in_ != nullptr)
      large_in_->cancel();
    else
      was_cancelled_ = transport_.messages_->cancel(halves_.in);
  }
  [[nodiscard]] bool was_cancelled() const override { return was_cancelled_; }

 private:
  // Starts one half of the call in MPI.
  std::unique_ptr<Pending> begin(rankmesh::Operation half) {
    Call call = call_;
    call.operation = half;
    if (half == rankmesh::Operation::send)
      call.out = {};
    else
      call.in = {};
    return transport_.large_->start(call);
  }
  void begin_large_receive() {
    if (std::exchange(must_receive_, false)) large_in_ = begin(rankmesh::Operation::recv);
  }

  // Makes progress. Returns whether everything has ended.
  bool advance() {
    shm::Messages& messages = *transport_.messages_;
    if (!halves_.are_complete()) messages.advance();
    if (!halves_.out.is_complete || large_out_ != nullptr) messages.make_space();
    if (messages.crossing()) end_crossing(*messages.crossing());
    // If the announcement differs, the message is received nevertheless: it must not stay in MPI.
    if (must_receive_ && halves_.in.is_complete) begin_large_receive();
    if (large_out_ != nullptr && large_out_->test()) large_out_.reset();
    advance_large_receive();
    return halves_.are_complete() && large_in_ == nullptr && large_out_ == nullptr;
  }
  void advance_large_receive() {
    if (large_in_ == nullptr) return;
    try {
      if (!large_in_->test()) return;
    } catch (const WrongLength& error) {
      wrong_length_ = error;  // the operation has ended
    }
    if (large_in_->was_cancelled()) {
      was_cancelled_ = true;
      if (!transport_.messages_->cancel(halves_.in)) transport_.messages_->put_back(halves_.in);
      halves_.in.is_complete = true;
    }
    large_in_.reset();
  }
  [[noreturn]] void end_crossing(const shm::Crossing& crossing) {
    // If the receive has not begun in MPI, nothing is left in MPI.
    if (large_in_ != nullptr) {
      large_in_->cancel();
      advance_large_receive();
    }
    transport_.throw_crossing(crossing);
  }
  // Throws if the message has another type or length than the receive. Both have ended then.
  void check() const {
    const shm::Message& in = halves_.in;
    if (in.wrong) [[unlikely]]
      throw WrongLength{fmt::format("received {}, but {} were expected", text_of(*in.wrong),
                                    text_of(in.envelope))};
    if (wrong_length_) throw WrongLength{*wrong_length_};
  }

  ShmTransport& transport_;
  const Call call_;
  Halves halves_;
  bool must_receive_ = false;
  bool was_cancelled_ = false;
  std::unique_ptr<Pending> large_in_, large_out_;
  std::optional<WrongLength> wrong_length_;
};

std::unique_ptr<Pending> ShmTransport::start_message(const Call& call) {
  throw_if_ended();
  return std::make_unique<PendingMessage>(*this, call, Halves{call});
}

std::optional<std::int64_t> ShmTransport::arrived(RankInGroup from, int tag) {
  throw_if_ended();
  if (messages_ == nullptr) return std::nullopt;
  return messages_->arrived(static_cast<std::size_t>(from.value()), tag);
}

void ShmTransport::run_message(const Call& call, Waiter& waiter) {
  detail::PublishedCall published{waiter, call, 0, carrier()};
  throw_if_ended();
  Halves halves{call};
  shm::Messages& messages = *messages_;
  if (halves.sends) halves.out.is_complete = messages.try_send(halves.out);
  if (halves.receives && halves.out.is_complete && !halves.out.is_large() &&
      messages.is_first(halves.in.peer)) {
    for (int i = 0; i < pauses_ && !messages.has_entry(halves.in.peer); ++i) detail::pause();
    (void)messages.try_receive(halves.in);
  }
  if (!halves.are_complete() || halves.are_large())
    waiter.finish(call, 0, std::make_unique<PendingMessage>(*this, call, halves));
  published.end();
}

void ShmTransport::throw_crossing(const shm::Crossing& crossing) const {
  const detail::GroupMembers& members = place_.members;
  throw MismatchError{
      fmt::format("a message of '{}' with tag {}: rank {} sent {}, but rank {} expected {}",
                  members.coordinators.front(), crossing.sent.tag, members.rank_of(crossing.peer),
                  text_of(crossing.sent), members.rank_of(engine_.group().self),
                  text_of(crossing.expected)),
      detail::length_hint, false};
}

}  // namespace rankmesh
