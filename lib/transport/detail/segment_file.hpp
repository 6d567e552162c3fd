// SPDX-License-Identifier: BSD-3-Clause
// The file behind a shared segment: one member creates it, the others open it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rankmesh/export.hpp"
#include "rankmesh/transport/shared_segment.hpp"

namespace rankmesh::detail {

/// What member 0 tells the other members so that they can open its file.
struct SegmentAnnouncement {
  std::uint64_t bytes = 0;
  std::uint64_t token = 0;  ///< Also written into the trailer of the segment.
  std::int64_t process = 0;
  std::int32_t descriptor = -1;
  std::int32_t error = 0;     ///< The errno of member 0 if it failed.
  std::int64_t is_named = 0;  ///< Whether it has a name in /dev/shm; otherwise it is a memfd.

  /// Returns the name in /dev/shm, which contains the random token.
  [[nodiscard]] std::string name() const;
};

/// One attempt of one member. Member 0 creates the file and announces it. The other members open
/// it, either by its name or through /proc/PID/fd/FD of member 0. A container may have its own
/// process numbers, so this path may refer to another file there. Therefore member 0 writes a
/// random token into a trailer behind the segment, and every member compares it. The members then
/// tell each other their errors. The trailer also counts the members that have mapped the segment.
///
/// All functions are local. The destructor unmaps the memory, and removes the name.
class RANKMESH_API SegmentFile {
 public:
  SegmentFile() = default;
  ~SegmentFile();
  SegmentFile(SegmentFile&& other) noexcept { swap(other); }
  SegmentFile& operator=(SegmentFile&& other) noexcept {
    swap(other);
    return *this;
  }
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  /// Creates the file, on member 0. A failure is part of the announcement.
  /// @param bytes  0 is treated as 1.
  [[nodiscard]] SegmentAnnouncement create(std::size_t bytes, SharedSegment::Backing backing);
  /// Opens the file, on the other members. Does nothing if member 0 has failed.
  void open(const SegmentAnnouncement& announcement);

  /// Returns the errno of this member's failure; 0 if it has not failed.
  [[nodiscard]] int error() const { return error_; }
  /// Tells the other members, through the trailer, that this member has mapped the segment. What it
  /// has written into the segment before is visible to a member that sees this.
  void announce_mapping() const;
  /// Returns whether so many members have told that they have mapped the segment.
  [[nodiscard]] bool is_mapped_by(std::size_t members) const;

  /// Returns the mapping, which this object keeps. Call it only if this member has not failed.
  [[nodiscard]] std::byte* data() const { return data_; }
  /// Returns the size in bytes that member 0 wants.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Returns the mapping, which the caller unmaps: mapped_bytes(size()). Call it only if no member
  /// has failed.
  [[nodiscard]] std::byte* release_mapping() { return std::exchange(data_, nullptr); }
  /// Returns the descriptor of the file, which the caller closes.
  [[nodiscard]] int release_descriptor() { return std::exchange(descriptor_, -1); }
  /// Returns the size of the mapping of a segment: the trailer follows the segment's own bytes.
  [[nodiscard]] static std::size_t mapped_bytes(std::size_t bytes) {
    return trailer_at(bytes) + sizeof(Trailer);
  }

 private:
  struct Trailer {
    std::uint64_t token;
    std::atomic<std::uint64_t> mapped;  // the number of members that have announced their mapping
  };
  static std::size_t trailer_at(std::size_t bytes) {
    return (bytes + alignof(Trailer) - 1) / alignof(Trailer) * alignof(Trailer);
  }
  [[nodiscard]] Trailer& trailer() const {
    return *reinterpret_cast<Trailer*>(data_ + trailer_at(size_));
  }
  void swap(SegmentFile& other) noexcept;
  bool create_file(std::size_t bytes, SharedSegment::Backing backing, SegmentAnnouncement& to);
  bool open_file(const SegmentAnnouncement& announcement);
  bool map();
  void note(bool is_done, int otherwise);

  int error_ = 0;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::string name_;  // in /dev/shm, to be removed
};

/// Returns the error that all members throw if one of them failed.
RANKMESH_API SharedMemoryError segment_error(const std::string& activity, std::uint64_t bytes,
                                             int member, int members, int error);

}  // namespace rankmesh::detail
