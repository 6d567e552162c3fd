#include "detail/shm_transport.hpp"

#include <sched.h>

#include <utility>

namespace rankmesh {
namespace {

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// How long a member looks before it gives its core away: about 20 us where each has a core. Where they share
// cores, whom it waits for is likely to wait for the core.
constexpr int pauses_with_own_core = 1000;
constexpr int pauses_on_shared_core = 8;
// How often it gives its core away before it waits in earnest: with a clock, MPI's progress, questions.
constexpr int yields = 200;

class ShmPending final : public Pending {
 public:
  ShmPending(shm::Engine& engine, const Call& call, std::uint64_t& under_way)
      : engine_{engine}, under_way_{under_way}, progress_{std::make_unique<shm::Progress>()} {
    engine_.begin(*progress_, call);
    ++under_way_;
    engine_.advance();
  }
  ~ShmPending() override {
    // The engine still refers to it, and the others to its buffers.
    if (!progress_->is_complete()) (void)progress_.release();  // NOLINT
  }
  bool test() override {
    if (is_complete_) return true;
    if (!progress_->is_complete()) engine_.advance();
    if (!progress_->is_complete()) return false;
    --under_way_;
    return is_complete_ = true;
  }

 private:
  shm::Engine& engine_;
  std::uint64_t& under_way_;
  std::unique_ptr<shm::Progress> progress_;
  bool is_complete_ = false;
};

}  // namespace

ShmTransport::ShmTransport(Place place, shm::Limits limits, Patience patience, std::uint64_t& under_way)
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
  if (!call.in_counts.empty() || !call.out_counts.empty())
    return "shared memory does not carry blocks of different sizes";
  return std::string{"shared memory does not carry "} + std::string{to_string(call.operation)} + " of " +
         std::string{to_string(call.out.type)};
}

void ShmTransport::run(const Call& call) {
  shm::Progress progress;
  engine_.begin(progress, call);
  engine_.advance();
  for (int i = 0; i < pauses_; ++i) {
    if (progress.is_complete()) return;
    pause();
    engine_.advance();
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
