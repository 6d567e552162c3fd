// Device memory that NCCL knows beforehand.
#pragma once

#include <cstddef>
#include <deque>
#include <string_view>

#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/device/nccl/library.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh::nccl {

/// Zeroed memory of the current device, from NCCL's allocator where it has one (2.19), to be
/// registered with communicators: as a symmetric window (2.27), or as a user buffer (2.19). NCCL
/// then finds the registration by the address that an operation is given. One thread.
class RANKMESH_API SymmetricMemory {
 public:
  enum class Registration { none, buffer, window };

  /// @throws NcclError, CudaError. Local.
  SymmetricMemory(const Library& library, std::size_t bytes);
  /// Frees; may wait for the whole device. The communicators have ended, or deregister() was
  /// called.
  ~SymmetricMemory();
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  /// Begins to register with a settled communicator. Collective over its ranks where NCCL has
  /// windows, so in one order on all of them; settle the communicator, then finish_registration().
  /// @param as_window  false: as a buffer only, which no other rank has to come for.
  void begin_registration(const Communicator& comm, bool as_window);
  /// What it was registered as. Where the devices cannot address each other, some versions of NCCL
  /// make no window and report success: the memory is then registered as a buffer, which is a local
  /// matter. Others make a buffer of it by themselves and call that a window.
  Registration finish_registration();
  /// Takes the registrations with a settled communicator back. Local.
  void deregister(const Communicator& comm);

 private:
  void release() noexcept;
  struct Registered {
    const Communicator* comm;
    ncclWindow_t window =
        nullptr;  // written while the communicator settles: must not move until then
    void* buffer = nullptr;
  };

  const Library* library_;
  std::byte* data_ = nullptr;
  std::size_t bytes_;
  std::deque<Registered> registered_;
};

std::string_view to_string(SymmetricMemory::Registration registration);

}  // namespace rankmesh::nccl
