// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/detail/reasons.hpp"

#include <exception>
#include <string_view>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

void add(std::string& text, std::string_view separator, const std::string& part) {
  if (text.find(part) != std::string::npos) return;
  if (!text.empty()) text += separator;
  text += part;
}

void add_exception(Reasons& reasons, const std::exception& error) {
  const auto* const own = dynamic_cast<const Error*>(&error);
  add(reasons.message, ": ", own != nullptr ? own->message() : error.what());
  if (own != nullptr) add(reasons.hint, "; ", own->hint());
}

// Adds the exception that is being handled.
void add_current(Reasons& reasons) {
  try {
    throw;
  } catch (const std::exception& error) {
    add_exception(reasons, error);
    const auto* const outer = dynamic_cast<const std::nested_exception*>(&error);
    if (outer == nullptr || outer->nested_ptr() == nullptr) return;
    try {
      outer->rethrow_nested();
    } catch (...) {
      add_current(reasons);
    }
  } catch (...) {
    add(reasons.message, ": ", "an exception that is not a std::exception");
  }
}

}  // namespace

std::string Reasons::text() const { return hint.empty() ? message : message + "\n  hint: " + hint; }

std::string Reasons::hint_and(const std::string& own) const {
  std::string both = hint;
  add(both, "; ", own);
  return both;
}

Reasons current_reasons() {
  Reasons reasons;
  add_current(reasons);
  return reasons;
}

}  // namespace rankmesh::detail
