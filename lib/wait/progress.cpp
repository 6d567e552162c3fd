// SPDX-License-Identifier: BSD-3-Clause
#include "detail/progress.hpp"

#include <sched.h>

#include <chrono>
#include <utility>

#include "base/detail/private_api.hpp"

namespace rankmesh::detail {
namespace {

std::atomic<void (*)(MeshLock*)> advance_function{nullptr};
std::atomic<void (*)()> leave_function{nullptr};

// A loop that begins its next test() so soon does nothing else, and yields its core after so many
// tests.
constexpr std::chrono::microseconds gap_in_loop{10};
constexpr int tests_before_yield = 4;

thread_local bool is_in_function = false;

}  // namespace

bool MeshLock::enter_after_guests() noexcept {
  const auto is_free = [&] { return !busy.test_and_set(std::memory_order_acquire); };
  for (;;) {
    const std::uint32_t before = visits.load();
    if (is_free()) return true;
    if (guest.load() == std::this_thread::get_id()) return false;
    if (guests.load() != 0)
      std::this_thread::yield();
    else if (is_free())  // the guest has left meanwhile
      return true;
    else if (visits.load() == before)  // no guest has come meanwhile, so it is in a call
      return false;
  }
}

InFunction::InFunction() noexcept : before_{std::exchange(is_in_function, true)} {}
InFunction::~InFunction() { is_in_function = before_; }
bool InFunction::is_entered() noexcept { return is_in_function; }

RANKMESH_PRIVATE_API void advance_everything(MeshLock* waiting) noexcept {
  if (const auto advance = advance_function.load(std::memory_order_acquire); advance != nullptr)
    advance(waiting);
}

RANKMESH_PRIVATE_API void advance_everything() noexcept { advance_everything(nullptr); }

RANKMESH_PRIVATE_API void advance_between_tests() noexcept {
  if (is_in_function) return;  // the caller continues
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point last_end{};
  static thread_local int in_loop = 0;
  in_loop = Clock::now() - last_end < gap_in_loop ? in_loop + 1 : 0;
  advance_everything(nullptr);
  if (in_loop >= tests_before_yield) {
    in_loop = tests_before_yield;
    sched_yield();
  }
  last_end = Clock::now();
}

void leave_fast_path() noexcept {
  if (const auto leave = leave_function.load(std::memory_order_acquire); leave != nullptr) leave();
}

void set_leave_fast_path(void (*leave)()) noexcept {
  leave_function.store(leave, std::memory_order_release);
}

void set_advance(void (*advance)(MeshLock*)) noexcept {
  advance_function.store(advance, std::memory_order_release);
}

}  // namespace rankmesh::detail
