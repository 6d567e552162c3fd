// SPDX-License-Identifier: BSD-3-Clause
// Memory that MPI may still use after a wait has failed.
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
/// therefore use the memory until the process ends. If the memory were freed, the program could
/// reuse it for another purpose, and MPI could overwrite the new contents. This class therefore
/// leaks the value on purpose if a wait fails. Otherwise, the destructor frees the value.
///
/// Only one thread at a time may use an object of this class.
template <class T>
class MpiMemory {
 public:
  /// Creates the value from the arguments. Without arguments, the value is value-initialised.
  template <class... Args>
  explicit MpiMemory(Args&&... args) : memory_{new T{std::forward<Args>(args)...}} {}

  // These functions require that the value has not been leaked.
  /// Returns the address of the memory.
  [[nodiscard]] T* get() const noexcept { return memory_.get(); }
  /// Returns the memory.
  T& operator*() const noexcept { return *memory_; }
  /// Returns the address of the memory.
  T* operator->() const noexcept { return memory_.get(); }
  /// Returns whether there is memory.
  explicit operator bool() const noexcept { return memory_ != nullptr; }

  /// Polls until the request is complete (see WaitMonitor::wait()). If wait() throws, the value has
  /// been leaked and this object is empty.
  /// @throws TimeoutError if the deadline passes. The error names the missing ranks.
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
  void leak() noexcept { (void)memory_.release(); }  // the leak is intended

 private:
  std::unique_ptr<T> memory_;
};

/// Leaks the memory of a container or of a smart pointer on purpose. `owner` is empty afterwards.
/// The elements keep their addresses, because a move does not copy them.
template <class T>
void leak(T& owner) {
  (void)new T{std::exchange(owner, T{})};  // the leak is intended
}

/// Runs an operation in which MPI uses the memory of `owners`, which are containers or smart
/// pointers. If the operation throws an exception, MPI may still use this memory. This function
/// then leaks the memory, so that the owners are empty, and rethrows the exception. A UsageError is
/// the only exception after which the owners keep their memory, because it is thrown before MPI
/// gets the memory.
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
