// SPDX-License-Identifier: BSD-3-Clause
// Memory that several processes of one node share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rankmesh/base/error.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// Reports that a system call on shared memory failed. The error keeps the value of errno.
class RANKMESH_API SharedMemoryError : public Error {
 public:
  /// Creates an error from a text, a hint and the code of the system.
  SharedMemoryError(std::string message, std::string hint, int code)
      : Error{std::move(message), std::move(hint)}, code_{code} {}
  /// Returns the value of errno after the failed call.
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

namespace detail {
class SegmentFile;
}

/// A block of zeroed memory that several processes of a node have mapped. Each member has its own
/// address for the memory. Move-only. The destructor is local: it only unmaps the memory in this
/// process. The operating system frees the memory after the last process has unmapped it or has
/// ended, even if a process is killed.
///
/// Only processes of the same user can open the segment (mode 0600). Member 0 creates the segment
/// with memfd_create if all members can open the memfd through /proc. A memfd has no name, and the
/// size of /dev/shm does not limit its size. Otherwise the segment has a random name in /dev/shm
/// until all members have mapped it.
class RANKMESH_API SharedSegment {
 public:
  /// Says how the members open the segment.
  enum class Backing : std::uint8_t {
    automatic,  ///< Through a memfd, which has no name, if possible; otherwise like `named`.
    named,      ///< Through a name in /dev/shm.
  };

  SharedSegment() = default;
  /// Takes the mapping of a file that all members have opened. Local.
  explicit SharedSegment(detail::SegmentFile& file);
  ~SharedSegment() { unmap(); }
  /// Takes over the segment of `other`, which is then empty.
  SharedSegment(SharedSegment&& other) noexcept
      : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
  /// Releases this object's segment, and takes over the segment of `other`.
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

  /// Returns the address of the memory, which is aligned to a page, or null for an empty segment.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Returns the size in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Returns whether there is a segment.
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  void unmap() noexcept;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rankmesh
