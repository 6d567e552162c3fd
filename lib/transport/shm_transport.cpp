// SPDX-License-Identifier: BSD-3-Clause
#include "detail/shm_transport.hpp"

#include <sched.h>

#include <utility>

namespace rankmesh {
namespace {

// How often a member looks before it gives its core away: about half a millisecond where each
// member has a core. Where members share cores, the one that is waited for is likely to need this
// core.
constexpr int pauses_with_own_core = 10000;
constexpr int pauses_on_shared_core = 8;
// How often it gives its core away before it waits through the Waiter, which reads clocks, drives
// MPI's progress and answers questions.
constexpr int yields = 200;

class ShmPending final : public Pending {
 public:
  ShmPending(shm::Engine& engine, const Call& call)
      : engine_{engine}, operation_{std::make_unique<Operation>(call)} {
    engine_.begin(operation_->progress, operation_->call);
    engine_.advance();
  }
  ~ShmPending() override {
    // The engine still refers to the record, and other members to its buffers, so it is leaked.
    if (!operation_->progress.is_complete()) (void)operation_.release();  // NOLINT
  }
  bool test() override {
    if (!operation_->progress.is_complete()) engine_.advance();
    return operation_->progress.is_complete();
  }

 private:
  struct Operation {
    explicit Operation(const Call& c) : call{c} {}
    Call call;
    shm::Progress progress;
  };
  shm::Engine& engine_;
  std::unique_ptr<Operation> operation_;
};

}  // namespace

ShmTransport::ShmTransport(const Place& place, shm::Limits limits)
    : engine_{place.areas, place.locals, place.self, place.slot_bytes, limits, place.key()},
      key_{place.key()},
      pauses_{place.is_oversubscribed ? pauses_on_shared_core : pauses_with_own_core} {}

std::string ShmTransport::why_not(const Call& call) const {
  if (call.has_blocks()) return "shared memory does not carry blocks of different sizes";
  return std::string{"shared memory does not carry "} + std::string{to_string(call.operation)} +
         " of " + std::string{to_string(call.out.type)};
}

void ShmTransport::run(const Call& call, Waiter& waiter) {
  shm::Progress progress;
  if (engine_.run_small(progress, call, pauses_)) return;
  if (progress.call == nullptr) {
    engine_.begin(progress, call);
    engine_.advance();
    for (int i = 0; i < pauses_ && !progress.is_complete(); ++i) {
      shm::pause();
      engine_.advance();
    }
  }
  for (int i = 0; i < yields; ++i) {
    if (progress.is_complete()) return;
    sched_yield();
    engine_.advance();
  }
  if (progress.is_complete()) return;
  try {
    waiter.wait(call, progress.first, [&] {
      engine_.advance();
      return progress.is_complete();
    });
  } catch (...) {
    engine_.give_up();  // `progress` goes out of scope, and nothing may follow it
    throw;
  }
}

std::unique_ptr<Pending> ShmTransport::start(const Call& call) {
  return std::make_unique<ShmPending>(engine_, call);
}

}  // namespace rankmesh
