// SPDX-License-Identifier: BSD-3-Clause
// Signals of the program are handled by its own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace rankmesh::detail {

/// Blocks all signals in this thread, and in the threads that it starts, as long as it exists.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace rankmesh::detail
