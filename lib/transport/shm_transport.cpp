#include "detail/shm_transport.hpp"

#include <sched.h>

#include <utility>

namespace rankmesh {
namespace {

// How long a member looks before it gives its core away: about half a millisecond where each has a
// core. Where they share cores, whom it waits for is likely to wait for the core.
constexpr int pauses_with_own_core = 10000;
constexpr int pauses_on_shared_core = 8;
// How often it gives its core away before it waits in earnest: with a clock, MPI's progress,
// questions.
constexpr int yields = 200;

class ShmPending final : public Pending {
 public:
  ShmPending(shm::Engine& engine, const Call& call, std::uint64_t& under_way)
      : engine_{engine}, under_way_{under_way}, operation_{std::make_unique<Operation>(call)} {
    engine_.begin(operation_->progress, operation_->call);
    ++under_way_;
    engine_.advance();
  }
  ~ShmPending() override {
    // The engine still refers to it, and the others to its buffers.
    if (!operation_->progress.is_complete()) (void)operation_.release();  // NOLINT
  }
  bool test() override {
    if (is_complete_) return true;
    if (!operation_->progress.is_complete()) engine_.advance();
    if (!operation_->progress.is_complete()) return false;
    --under_way_;
    return is_complete_ = true;
  }

 private:
  struct Operation {
    explicit Operation(const Call& c) : call{c} {}
    Call call;
    shm::Progress progress;
  };
  shm::Engine& engine_;
  std::uint64_t& under_way_;
  std::unique_ptr<Operation> operation_;
  bool is_complete_ = false;
};

}  // namespace

ShmTransport::ShmTransport(Place place, shm::Limits limits, Patience patience,
                           std::uint64_t& under_way)
    : engine_{std::move(place.areas),
              std::move(place.locals),
              place.self,
              place.slot_bytes,
              limits,
              place.group},
      patience_{std::move(patience)},
      under_way_{under_way},
      pauses_{place.is_crowded ? pauses_on_shared_core : pauses_with_own_core} {}

std::string ShmTransport::why_not(const Call& call) const {
  if (call.has_blocks()) return "shared memory does not carry blocks of different sizes";
  return std::string{"shared memory does not carry "} + std::string{to_string(call.operation)} +
         " of " + std::string{to_string(call.out.type)};
}

void ShmTransport::run(const Call& call) {
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
    patience_(
        [&] {
          engine_.advance();
          return progress.is_complete();
        },
        call, progress.first);
  } catch (...) {
    engine_.give_up();  // `progress` goes, and nothing may follow it
    throw;
  }
}

std::unique_ptr<Pending> ShmTransport::start(const Call& call) {
  return std::make_unique<ShmPending>(engine_, call, under_way_);
}

}  // namespace rankmesh
