// Memory that several processes of one node see.
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

/// A system call on shared memory that failed; keeps errno.
class RANKMESH_API SharedMemoryError : public Error {
 public:
  SharedMemoryError(std::string message, std::string hint, int code)
      : Error{std::move(message), std::move(hint)}, code_{code} {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A stretch of zeroed memory that all members of a communicator have mapped, each at an address of
/// its own. Move-only; the destructor unmaps it, which is local, and the system frees it with the
/// last mapping, also where a process is killed.
///
/// The owner alone may open it (mode 0600). It has no name at all where members can open each
/// other's memfd through /proc, which the size of /dev/shm does not limit either; else a random
/// name in /dev/shm, which is removed as soon as all have mapped it.
class RANKMESH_API SharedSegment {
 public:
  /// How the members find it.
  enum class Way : std::uint8_t { automatic, named };

  SharedSegment() = default;
  /// Collective over `members`, which share a node; polls, with the deadline. Member 0's `bytes`
  /// count (at least 1). Where one member fails, all throw. Cost: a broadcast of 128 bytes and a
  /// reduction of 8, twice where a name is needed. Pages are taken when they are first written (a
  /// named segment: all at once).
  /// @param step  what the members wait in; its members are ranks of the roll call's communicator.
  /// @throws SharedMemoryError, the same text on every member; TimeoutError naming who did not
  /// come.
  SharedSegment(const mpi::CommunicatorView& members, std::size_t bytes, WaitMonitor& monitor,
                const WaitPoint& step, const Deadline& deadline, Way way = Way::automatic);
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

  /// Aligned to a page; null for an empty one.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  void unmap() noexcept;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rankmesh
