// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/error.hpp"

#include <utility>

namespace rankmesh {
namespace {

std::string with_hint(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : message + "\n  hint: " + hint;
}

}  // namespace

Error::Error(std::string message, std::string hint)
    : std::runtime_error{with_hint(message, hint)},
      message_{std::move(message)},
      hint_{std::move(hint)} {}

SpecError::SpecError(std::string message, std::string hint, std::optional<std::size_t> position)
    : Error{std::move(message), std::move(hint)}, position_{position} {}

TimeoutError::TimeoutError(std::string message, std::string hint, std::vector<Rank> missing)
    : Error{std::move(message), std::move(hint)}, missing_{std::move(missing)} {}

}  // namespace rankmesh
