// SPDX-License-Identifier: BSD-3-Clause
// Device memory that is registered with NCCL.
#pragma once

#include <cstddef>
#include <deque>
#include <string_view>

#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::nccl {

/// Holds zeroed memory of the current device, which can be registered with communicators as a
/// symmetric window (NCCL 2.27) or as a user buffer (2.19). In an operation, NCCL finds the
/// registration by the address. The memory comes from NCCL's allocator if the library has one
/// (2.19).
///
/// Thread safety: one thread at a time.
class RANKMESH_API SymmetricMemory {
 public:
  enum class Registration { none, buffer, window };

  /// Allocates the memory. Local. @throws NcclError, CudaError.
  SymmetricMemory(const Library& library, std::size_t bytes);
  /// Frees the memory; may wait for all work on the device. Before the destructor runs, the
  /// communicators must have ended, or deregister() must have been called.
  ~SymmetricMemory();
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  /// Begins to register with a communicator that is ready. Call its wait_until_ready() next,
  /// then finish_registration().
  /// @param as_window  Whether to register as a window if NCCL supports windows. Registering as a
  /// window is collective over the communicator's ranks; registering as a buffer is local.
  void begin_registration(const Communicator& comm, bool as_window);
  /// Completes the registration and returns its kind. If the devices cannot address each other,
  /// some versions of NCCL report success without a window; the memory is then registered as a
  /// buffer, which is local. Other versions of NCCL register a buffer themselves and return this
  /// buffer as a window.
  Registration finish_registration();
  /// Removes the registrations with a communicator that is ready. Local.
  void deregister(const Communicator& comm);

 private:
  void release() noexcept;
  struct Registered {
    const Communicator* comm;
    // NCCL writes it until the communicator is ready, so its address must not change (in a deque,
    // it does not).
    ncclWindow_t window = nullptr;
    void* buffer = nullptr;
  };

  const Library* library_;
  std::byte* data_ = nullptr;
  std::size_t bytes_;
  std::deque<Registered> registered_;
};

/// Returns the word for messages.
std::string_view to_string(SymmetricMemory::Registration registration);

}  // namespace rankmesh::nccl
