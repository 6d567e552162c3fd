// SPDX-License-Identifier: BSD-3-Clause
// The reasons why calls must not take the fast path.
#pragma once

#include <atomic>
#include <cstdint>

namespace rankmesh::detail {

/// Counts the reasons for which every call of a mesh takes the checked path instead of the fast
/// one: +1 per polled operation that is in flight in any mesh of the process, +1 while a batch is
/// open, +1 in a function that makes calls for the program (CalledBy), +1 when blocking host
/// operations have a deadline, +1 if calls are shown as ranges of NVTX, +1 when ranks are lost. The
/// fast path reads one word.
///
/// Thread safety: any thread may call any function.
class SlowPathReasons {
 public:
  void add(std::int64_t reasons = 1) { count_.fetch_add(reasons, std::memory_order_relaxed); }
  void remove() { count_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] bool any() const { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<std::int64_t> count_{0};
};

}  // namespace rankmesh::detail
