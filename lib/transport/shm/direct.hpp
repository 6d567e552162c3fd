// SPDX-License-Identifier: BSD-3-Clause
// Reads of ordinary memory of other members, where the system allows them.
//
// A member that takes part in such an operation does not change its buffers before all other
// members have finished reading them. A member that gives up or leaves may change its buffers
// earlier, but it announces this first (see Finding and AreaPresence). The process of a member may
// also end. Therefore read() checks for both after each piece. If data may have changed, they are
// not used, and the operation does not continue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "transport/shm/area.hpp"

namespace rankmesh::shm {

/// Reads the memory of members by the addresses of their processes.
class MemoryReader {
 public:
  virtual ~MemoryReader() = default;
  /// Copies `bytes` bytes of a member's memory. Returns 0, or the system's error code. ESRCH says
  /// that the process of the member has ended.
  /// @param member  the local rank of the member, see Group::locals.
  [[nodiscard]] virtual int read(std::int32_t member, std::uint64_t address, std::byte* to,
                                 std::size_t bytes) = 0;
};

/// A read that has failed. Its operation does not continue.
struct FailedRead {
  std::size_t member;  ///< whose memory could not be read
  int code;            ///< of the system; 0 if the member has given up or left
};

/// What a group needs to read ordinary memory of its members.
struct DirectReads {
  /// The bytes that a member reads at once from another one, before it reduces them.
  static constexpr std::size_t piece_bytes = 64 << 10;

  DirectReads(MemoryReader& memory, std::size_t members)
      : reader{memory},
        scratch{std::make_unique_for_overwrite<std::byte[]>(members * piece_bytes)},
        addresses{std::make_unique<std::uint64_t[]>(members)} {}

  MemoryReader& reader;
  std::unique_ptr<std::byte[]> scratch;        ///< `piece_bytes` for each member
  std::unique_ptr<std::uint64_t[]> addresses;  ///< of the members' inputs, in their processes
  std::optional<FailedRead> failure;
};

}  // namespace rankmesh::shm
