// SPDX-License-Identifier: BSD-3-Clause
#include "detail/progress_in_mpi.hpp"

#include <signal.h>

#include <chrono>

namespace rankmesh::detail {
namespace {

// Between two looks. It is shorter than what a rank notices that waits for a large message, and
// leaves the core to the thread in MPI.
constexpr std::chrono::microseconds pause_between_looks{50};

}  // namespace

ProgressInMpi::ProgressInMpi(OperationsInFlight& operations) {
  // Signals of the program are handled by its own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread{[this, &operations] {
      while (!has_ended_.load(std::memory_order_acquire)) {
        operations.advance_polled_messages();
        std::this_thread::sleep_for(pause_between_looks);
      }
    }};
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProgressInMpi::~ProgressInMpi() {
  has_ended_.store(true, std::memory_order_release);
  thread_.join();
}

}  // namespace rankmesh::detail
