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

/// A system call on shared memory failed. It keeps errno.
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
/// address. Move-only. The destructor unmaps it, which is local. The system frees the memory with
/// the last mapping, also when a process is killed.
///
/// Only processes of the same user can open it (mode 0600). If all members can open member 0's
/// memfd through /proc, it has no name, and the size of /dev/shm does not limit it. Otherwise it
/// has a random name in /dev/shm, which is removed as soon as all members have mapped it.
class RANKMESH_API SharedSegment {
 public:
  /// How the members open the segment.
  enum class Backing : std::uint8_t {
    automatic,  ///< A memfd without a name, else as `named`.
    named,      ///< A name in /dev/shm.
  };

  SharedSegment() = default;
  /// Creates a segment and maps it on every member. Collective over `members`, which must share a
  /// node; blocks, with the deadline. If one member fails, all throw.
  ///
  /// Cost: a broadcast of 128 bytes and a reduction of 8 bytes, twice if a name is needed.
  /// The system allocates a page when it is first written; for a named segment it
  /// allocates all pages at once.
  /// @param bytes  Only member 0's value counts; 0 means 1.
  /// @param point  The wait point of the members; it holds their ranks in the
  ///               monitor's communicator.
  /// @throws SharedMemoryError  The text is the same on every member.
  /// @throws TimeoutError  It names the missing ranks.
  SharedSegment(const mpi::CommunicatorView& members, std::size_t bytes, WaitMonitor& monitor,
                const WaitPoint& point, const Deadline& deadline,
                Backing backing = Backing::automatic);
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
