// SPDX-License-Identifier: BSD-3-Clause
// Memory that several processes of one node share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh {

/// Reports that a system call on shared memory failed. The error keeps errno.
class RANKMESH_API SharedMemoryError : public Error {
 public:
  SharedMemoryError(std::string message, std::string hint, int code)
      : Error{std::move(message), std::move(hint)}, code_{code} {}
  /// Returns errno.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A block of zeroed memory that all members of a communicator have mapped, each at its own
/// address. Move-only. The destructor removes this process's mapping, which is local. The system
/// frees the memory when the last mapping ends, even if a process is killed.
///
/// Only processes of the same user can open the segment (mode 0600). If all members can open member
/// 0's memfd through /proc, the segment has no name, and the size of /dev/shm does not limit it.
/// Otherwise the segment has a random name in /dev/shm. The name is removed as soon as all members
/// have mapped the segment.
class RANKMESH_API SharedSegment {
 public:
  /// Says how the members open the segment.
  enum class Backing : std::uint8_t {
    automatic,  ///< Through a memfd without a name if that is possible, otherwise as with `named`.
    named,      ///< Through a name in /dev/shm.
  };

  SharedSegment() = default;
  /// Creates a segment and maps it on every member. Collective over `members`, which must share a
  /// node; blocks, with the deadline. If a member fails, all members throw.
  ///
  /// Cost: a broadcast of 128 bytes and a reduction of 8 bytes; both happen twice if a name is
  /// needed. The system allocates a page when a process first writes to the page; for a named
  /// segment, the system allocates all pages at once.
  /// @param bytes  The size in bytes. Only member 0's value is used; 0 means 1.
  /// @param point  The wait point of the members; it holds the members' ranks in the monitor's
  ///               communicator.
  /// @param descriptor  If not null, it receives a descriptor of the file behind the segment, which
  ///                    this process has opened itself. The caller closes it.
  /// @throws SharedMemoryError  The text is the same on every member.
  /// @throws TimeoutError  The error names the missing ranks.
  SharedSegment(const mpi::CommunicatorView& members, std::size_t bytes, WaitMonitor& monitor,
                const WaitPoint& point, const Deadline& deadline,
                Backing backing = Backing::automatic, int* descriptor = nullptr);
  ~SharedSegment() { unmap(); }
  SharedSegment(SharedSegment&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
  SharedSegment& operator=(SharedSegment&& other) noexcept {
    if (this != &other) {
      unmap();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  /// Returns the first byte, aligned to a page, or null for an empty segment.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Returns the size in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  void unmap() noexcept;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rankmesh
