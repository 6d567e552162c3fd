// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/transport.hpp"

#include <fmt/format.h>

#include "rankmesh/wait/backoff.hpp"

namespace rankmesh {

bool Pending::wait(const Deadline& deadline) {
  return poll_until([&] { return test(); }, deadline);
}

std::unique_ptr<Pending> Transport::start(const Call& call) {
  throw UsageError{fmt::format("a transport was asked to start {}, but it has no start()",
                               to_string(call.operation)),
                   "override Transport::start(), or remove has_async_forms()"};
}

}  // namespace rankmesh
