// SPDX-License-Identifier: BSD-3-Clause
// Memory that MPI may still use.
#pragma once

#include <memory>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh {

/// Owns a value that non-blocking MPI operations read or write.
///
/// The request of a collective operation cannot be cancelled. After a wait has failed, MPI may
/// therefore use the memory until the process ends, and freeing it would let MPI overwrite memory
/// that the program has already used for another purpose. So this class leaks the value on purpose
/// when a wait fails; otherwise the destructor frees it.
///
/// Thread safety: one thread at a time.
template <class T>
class MpiMemory {
 public:
  /// Creates the value from the arguments. Without arguments, the value is value-initialised.
  template <class... Args>
  explicit MpiMemory(Args&&... args) : memory_{new T{std::forward<Args>(args)...}} {}

  // The value must not have been leaked.
  [[nodiscard]] T* get() const noexcept { return memory_.get(); }
  T& operator*() const noexcept { return *memory_; }
  T* operator->() const noexcept { return memory_.get(); }
  explicit operator bool() const noexcept { return memory_ != nullptr; }

  /// Polls until the request is complete (see WaitMonitor::wait()). If wait() throws, the value has
  /// been leaked and this object is empty.
  /// @throws TimeoutError  The error names the missing ranks.
  void wait(MPI_Request request, WaitMonitor& monitor, const WaitPoint& point,
            const Deadline& deadline) {
    try {
      monitor.wait({&request, 1}, point, deadline);
    } catch (...) {
      leak();
      throw;
    }
  }

  /// Leaks the value on purpose. This object is empty afterwards.
  void leak() noexcept { (void)memory_.release(); }  // NOLINT: that is what it is for

 private:
  std::unique_ptr<T> memory_;
};

/// Leaks the memory of a container or of a smart pointer on purpose. `owner` is empty afterwards.
/// The elements keep their addresses, because a move does not copy them.
template <class T>
void leak(T& owner) {
  (void)new T{std::exchange(owner, T{})};  // NOLINT: that is what it is for
}

/// Runs an operation that lets MPI use the memory that `owners` (containers or smart pointers) own.
/// After any failure other than UsageError, MPI may still use that memory, so this function leaks
/// the memory, and the owners are empty. A UsageError is thrown before MPI has seen the memory.
template <class Operation, class... Owners>
void run_or_leak(Operation&& operation, Owners&... owners) {
  try {
    operation();
  } catch (const UsageError&) {
    throw;
  } catch (...) {
    (leak(owners), ...);
    throw;
  }
}

}  // namespace rankmesh
