// SPDX-License-Identifier: BSD-3-Clause
// Messages between the ranks of a communicator, all of one batch progressing together.
#pragma once

#include <string>
#include <vector>

#include "comm.hpp"

namespace fake {

// A message carries these, and the receiver compares: number of the operation, what it is.
struct Label {
  std::uint64_t tag = 0;
  int kind = 0;
  int is_registered = 0;  // the memory of a message
};

struct Outgoing {
  int peer;
  const char* data;
  std::size_t bytes;
  Label label;
};

struct Incoming {
  int peer;
  char* data;
  std::size_t bytes;
  Label label;
};

Outcome exchange(Comm& comm, const std::string& what, const std::vector<Outgoing>& sends,
                 const std::vector<Incoming>& receives);

}  // namespace fake
