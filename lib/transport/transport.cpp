// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/transport.hpp"

#include "rankmesh/wait/backoff.hpp"

namespace rankmesh {

bool Pending::wait(const Deadline& deadline) {
  return poll_until([&] { return test(); }, deadline);
}

}  // namespace rankmesh
