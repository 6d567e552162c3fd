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

/// Holds zeroed memory of the current device. The memory can be registered with communicators as a
/// symmetric window (NCCL 2.27 or later) or as a user buffer (NCCL 2.19 or later). In an operation,
/// NCCL finds the registration by the address. The memory comes from NCCL's own allocator if NCCL
/// has one (2.19 or later), and otherwise from cudaMalloc.
///
/// Thread safety: one thread at a time.
class RANKMESH_API SymmetricMemory {
 public:
  /// How memory is registered with a communicator.
  enum class Registration { none, buffer, window };

  /// Allocates the memory. Local.
  /// @throws NcclError or CudaError if the allocation fails.
  SymmetricMemory(const Library& library, std::size_t bytes);
  /// Frees the memory. cudaFree waits for all work on the device, but NCCL waits for nothing, so
  /// wait for the work that uses the memory before you destroy the object. Also destroy the
  /// communicators with which the memory is registered, or call deregister() for each of them.
  ~SymmetricMemory();
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;

  /// Returns the address of the memory on this rank's device.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Returns the size of the memory in bytes: a multiple of the page size, at least what was asked.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Begins to register the memory with a communicator, which must be ready. Next call
  /// wait_until_ready() of the communicator, and then finish_registration().
  /// Registers a window if NCCL supports windows, which is collective over the communicator's
  /// ranks. Otherwise finish_registration() registers a buffer, which is local.
  void begin_registration(const Communicator& comm);
  /// Completes the registration and returns its kind. If the devices cannot address each other,
  /// some versions of NCCL report success without creating a window. In that case this function
  /// registers the memory as a buffer, which is a local call. Other versions of NCCL register a
  /// buffer themselves and return this buffer as a window.
  Registration finish_registration();
  /// Removes the registrations with a communicator, which must be ready. Local.
  void deregister(const Communicator& comm);

 private:
  void release() noexcept;
  struct Registered {
    const Communicator* comm;
    // NCCL may write the handle until the communicator is ready, so its address must not change.
    // The elements of a deque keep their addresses.
    ncclWindow_t window = nullptr;
    void* buffer = nullptr;
  };

  const Library* library_;
  std::byte* data_ = nullptr;
  std::size_t bytes_;
  std::deque<Registered> registered_;
};

/// Returns a word for the kind of registration, for use in messages.
std::string_view to_string(SymmetricMemory::Registration registration);

}  // namespace rankmesh::nccl
