// SPDX-License-Identifier: BSD-3-Clause
// Why calls may not take the fast path.
#pragma once

#include <cstdint>

namespace rankmesh::detail {

/// Counts the reasons for which every call of a mesh takes the checked path instead of the fast
/// one: +1 per polled operation that is in flight, +1 while a batch is open, +1 when blocking host
/// operations have a deadline, +1 if calls are shown as ranges of NVTX. The fast path reads one
/// word.
class SlowPathReasons {
 public:
  void add() { ++count_; }
  void remove() { --count_; }
  [[nodiscard]] bool any() const { return count_ != 0; }
  /// Adds a reason that stays: a tool looks at every call, which changes none of them.
  void add_observer() { ++count_, ++observers_; }
  /// Returns whether there are reasons other than observers.
  [[nodiscard]] bool any_but_observers() const { return count_ != observers_; }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t observers_ = 0;
};

}  // namespace rankmesh::detail
