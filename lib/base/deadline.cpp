#include "rankmesh/base/deadline.hpp"

#include <cmath>
#include <cstdlib>

#include "rankmesh/base/error.hpp"

namespace rankmesh {

void require_positive(Deadline::Duration duration, const char* what) {
  if (!(duration.count() > 0))  // not a number either
    throw UsageError{std::string{what} + " is " + std::to_string(duration.count()) + " s",
                     "give a positive number of seconds"};
}

Deadline::Duration default_timeout() {
  const char* text = std::getenv("RANKMESH_TIMEOUT");
  if (text == nullptr || *text == '\0') return Deadline::Duration{600.0};
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  // The upper bound keeps the sum with the clock from overflowing; thirty years are for ever.
  if (*end != '\0' || !std::isfinite(seconds) || seconds <= 0 || seconds > 1e9)
    throw UsageError{std::string{"RANKMESH_TIMEOUT='"} + text + "' is not a number of seconds",
                     "set it to a positive number such as 600"};
  return Deadline::Duration{seconds};
}

}  // namespace rankmesh
