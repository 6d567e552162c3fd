// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/deadline.hpp"

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/base/settings.hpp"

namespace rankmesh {

void require_positive(Deadline::Duration duration, const char* name) {
  if (!(duration.count() > 0))  // NaN is refused too
    throw UsageError{
        fmt::format("{} must be a positive number of seconds, got {}", name, duration.count()),
        "give a positive number of seconds"};
}

Deadline::Duration default_timeout() {
  return seconds_from_environment("RANKMESH_TIMEOUT").value_or(Deadline::Duration{600.0});
}

}  // namespace rankmesh
