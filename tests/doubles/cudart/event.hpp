// SPDX-License-Identifier: BSD-3-Clause
// Events: a mark in a stream and the time at which it was reached.
#pragma once

#include <atomic>
#include <memory>

#include "stream.hpp"

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  bool recorded = false;
  fake::Mark mark;
  std::shared_ptr<std::atomic<double>> milliseconds;  // of the latest record
  std::shared_ptr<fake::Capture> capture;             // where it was recorded by a capture
  fake::Coverage covered;
};

namespace fake {
long live_events();
}
