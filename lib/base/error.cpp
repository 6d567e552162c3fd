// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/error.hpp"

#include <cstdint>
#include <exception>

#include "base/detail/error_in_flight.hpp"
#include "rankmesh/base/detail/reasons.hpp"

namespace rankmesh {
namespace {

// Whether the objects of this thread have been destroyed. Static objects are destroyed later, and
// they may create errors too.
thread_local constinit bool is_thread_over = false;

struct LastMessage {
  std::weak_ptr<const std::string> text;
  enum class ErrorKind : std::uint8_t { other, peer_error, lost_ranks } kind = ErrorKind::other;
  ~LastMessage() { is_thread_over = true; }
};
thread_local LastMessage last_message;

}  // namespace

std::string detail::error_in_flight() {
  // Inside a handler, the last error may be the one that is being handled, while another exception
  // unwinds the stack.
  if (is_thread_over || std::current_exception() != nullptr) return "";
  const auto message = last_message.text.lock();
  return message == nullptr ? "" : *message;
}

std::string detail::reason_in_flight() {
  const std::string error = error_in_flight();
  if (error.empty()) return "";
  return last_message.kind == LastMessage::ErrorKind::peer_error ? first_cause(error)
                                                                 : "probably " + error;
}

std::string detail::first_cause(const std::string& error) {
  const std::size_t known = error.find("because rank ");
  return known == std::string::npos ? "because " + error : error.substr(known);
}

bool detail::is_loss_in_flight() {
  return !error_in_flight().empty() && last_message.kind == LastMessage::ErrorKind::lost_ranks;
}

void detail::forget_last_error() noexcept {
  if (!is_thread_over && std::uncaught_exceptions() == 0) last_message.text.reset();
}

Error::Error(std::string message, std::string hint)
    : std::runtime_error{detail::Reasons{message, hint}.text()},
      message_{std::move(message)},
      hint_{std::move(hint)},
      alive_{std::make_shared<const std::string>(message_)} {
  if (is_thread_over) return;
  last_message.text = alive_;
  last_message.kind = LastMessage::ErrorKind::other;
}

SpecError::SpecError(std::string message, std::string hint, std::optional<std::size_t> position)
    : Error{std::move(message), std::move(hint)}, position_{position} {}

TimeoutError::TimeoutError(std::string message, std::string hint, std::vector<Rank> missing)
    : Error{std::move(message), std::move(hint)}, missing_{std::move(missing)} {}

PeerError::PeerError(std::string message, std::string hint, std::vector<Rank> missing)
    : TimeoutError{std::move(message), std::move(hint), std::move(missing)} {
  if (!is_thread_over) last_message.kind = LastMessage::ErrorKind::peer_error;
}

LostRanks::LostRanks(std::string message, std::string hint, std::vector<Rank> ranks,
                     std::optional<std::int64_t> step)
    : Error{std::move(message), std::move(hint)}, ranks_{std::move(ranks)}, step_{step} {
  if (!is_thread_over) last_message.kind = LastMessage::ErrorKind::lost_ranks;
}

}  // namespace rankmesh
