// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/error.hpp"

#include <utility>

#include "base/detail/error_in_flight.hpp"

namespace rankmesh {
namespace {

std::string with_hint(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : message + "\n  hint: " + hint;
}

thread_local std::weak_ptr<const std::string> last_message;

}  // namespace

std::string detail::error_in_flight() {
  const auto message = last_message.lock();
  return message == nullptr ? "" : *message;
}

Error::Error(std::string message, std::string hint)
    : std::runtime_error{with_hint(message, hint)},
      message_{std::move(message)},
      hint_{std::move(hint)},
      alive_{std::make_shared<const std::string>(message_)} {
  last_message = alive_;
}

SpecError::SpecError(std::string message, std::string hint, std::optional<std::size_t> position)
    : Error{std::move(message), std::move(hint)}, position_{position} {}

TimeoutError::TimeoutError(std::string message, std::string hint, std::vector<Rank> missing)
    : Error{std::move(message), std::move(hint)}, missing_{std::move(missing)} {}

}  // namespace rankmesh
