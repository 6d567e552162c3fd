// SPDX-License-Identifier: BSD-3-Clause
// What a rank publishes for the other ranks of its node, in shared memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "published_needs.hpp"
#include "rankmesh/base/published_text.hpp"

namespace rankmesh::detail {

/// The state of a rank's part in the mesh.
enum class Presence : std::uint32_t {
  none,       ///< The rank has not published anything yet.
  open,       ///< Its mesh is open.
  closed,     ///< It has closed the mesh.
  destroyed,  ///< It has destroyed the mesh without close().
  failed,     ///< An exception has destroyed the mesh.
};

/// Identifies a message between two members, which has no number.
struct PublishedMessage {
  std::int64_t to = 0;    ///< A rank in the group; not used by recv.
  std::int64_t from = 0;  ///< A rank in the group; not used by send.
  int tag = 0;

  [[nodiscard]] std::uint64_t packed() const {
    return static_cast<std::uint64_t>(to) << 40 |
           (static_cast<std::uint64_t>(from) & rank_mask) << 16 |
           (static_cast<std::uint64_t>(tag) & 0xffff);
  }
  [[nodiscard]] static PublishedMessage of(std::uint64_t packed) {
    return {static_cast<std::int64_t>(packed >> 40),
            static_cast<std::int64_t>(packed >> 16 & rank_mask), static_cast<int>(packed & 0xffff)};
  }

 private:
  static constexpr std::uint64_t rank_mask = 0xffffff;
};

/// The call that MPI carries now. Its owner writes it without a clock and without formatting.
struct PublishedCall {
  std::atomic<std::uint64_t> sequence{0};  ///< Odd inside a call.
  std::atomic<std::uint64_t> what{0};      ///< The label times 256, plus the operation.
  std::atomic<std::uint64_t> number{0};    ///< Of the call, or a packed PublishedMessage.
  /// The sequence number that the watchdog has seen last, and since when (in nanoseconds).
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::int64_t> seen_since{0};
};

/// What the device of a rank has to do; see DeviceWatch.
struct PublishedDeviceWork {
  static constexpr std::size_t places = 64;
  /// An open group of the rank, and the number of the latest collective that the rank has issued.
  struct Latest {
    std::atomic<std::uint64_t> group{0};  ///< A hash of the group's identity; 0: not used.
    std::atomic<std::uint64_t> number{0};
    std::atomic<std::uint32_t> label{0};  ///< The name of the group; see NodeBoard::label().
  };
  std::array<Latest, places> latest{};
  std::atomic<std::uint32_t> groups_without_place{0};
  /// The oldest operation that is not known to have ended: its place plus one in the highest byte,
  /// then its number, which messages do not have. 0: none.
  std::atomic<std::uint64_t> oldest{0};
  PublishedTextOf<1016> stuck;  ///< The operation that this rank has found stuck; or empty.
};

/// The part of the board that one rank writes.
struct alignas(128) BoardSlot {
  static constexpr std::size_t labels = 256;
  static constexpr std::size_t label_bytes = 32;

  std::atomic<Presence> presence{Presence::none};
  std::atomic<bool> has_lock{false};         ///< Whether the rank could take its lock.
  std::atomic<bool> is_end_reported{false};  ///< Whether some rank has reported its abnormal end.
  std::atomic<std::int64_t> process{0};
  std::atomic<std::uint64_t> start_time{0};
  std::atomic<std::uint64_t> pid_namespace{0};
  std::array<std::atomic<std::uint64_t>, 2> token{};  ///< See ProcessIdentity.
  alignas(64) PublishedCall call;
  alignas(64) PublishedText wait;    ///< Empty if the rank does not wait.
  PublishedText reason;              ///< Why an exception destroyed the mesh.
  alignas(64) PublishedNeeds needs;  ///< For whom the rank waits.
  /// The version of `needs` of a wait that is part of a deadlock, and the slot of the rank that has
  /// found it. 0: none.
  std::atomic<std::uint64_t> deadlock_version{0};
  std::atomic<std::uint64_t> deadlock_finder{0};
  alignas(64) PublishedDeviceWork device;
  PublishedTextOf<2040> deadlock;  ///< What this rank has found, for the others.
  std::atomic<std::uint32_t> label_count{0};
  std::array<std::array<char, label_bytes>, labels> label{};
};

}  // namespace rankmesh::detail
