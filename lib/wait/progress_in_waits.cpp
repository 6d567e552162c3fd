// SPDX-License-Identifier: BSD-3-Clause
#include "detail/progress_in_waits.hpp"

#include <atomic>

namespace rankmesh::detail {
namespace {

std::atomic<void (*)()> progress_function{nullptr};

}  // namespace

void progress_in_waits() {
  if (const auto progress = progress_function.load(std::memory_order_acquire)) progress();
}

void set_progress_in_waits(void (*progress)()) noexcept {
  progress_function.store(progress, std::memory_order_release);
}

}  // namespace rankmesh::detail
