// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/deadline.hpp"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {

void require_positive(Deadline::Duration duration, const char* name) {
  if (!(duration.count() > 0))  // NaN is refused too
    throw UsageError{
        fmt::format("{} must be a positive number of seconds, got {}", name, duration.count()),
        "give a positive number of seconds"};
}

Deadline::Duration default_timeout() {
  const char* text = std::getenv("RANKMESH_TIMEOUT");
  if (text == nullptr || *text == '\0') return Deadline::Duration{600.0};
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  // The upper bound of thirty years keeps the sum of the clock and the timeout from overflowing.
  if (*end != '\0' || !std::isfinite(seconds) || seconds <= 0 || seconds > 1e9)
    throw UsageError{
        fmt::format("RANKMESH_TIMEOUT must be a positive number of seconds, got '{}'", text),
        "set it to a positive number such as 600"};
  return Deadline::Duration{seconds};
}

}  // namespace rankmesh
