// SPDX-License-Identifier: BSD-3-Clause
// The tags of rankmesh's own messages on the communicator of a group.
#pragma once

#include <cstdint>

namespace rankmesh::detail {

/// Distinguishes the messages of one group from those of other groups on the same communicator. The
/// program may adopt a communicator several times, under several names and in several meshes.
struct GroupKey {
  std::uint64_t group = 0;  ///< Of the identity of the group; the same on all members.
  std::uint64_t mesh = 0;   ///< Of the mesh; differs between meshes.

  // The tags are greater than the tags of the program (see max_tag) and less than the tags of
  // control queues. They depend on the group and on the mesh, so that two groups on one
  // communicator rarely have the same tag. If they do, receive_of_group() tells their messages
  // apart.

  /// The tag of MessageGuard.
  [[nodiscard]] int header_tag() const { return first_tag + 2 * static_cast<int>(mark() % tags); }
  /// The tag of NoteGuard.
  [[nodiscard]] int note_tag() const { return header_tag() + 1; }
  /// The first word of each message.
  [[nodiscard]] std::uint64_t mark() const { return group ^ mesh; }

 private:
  static constexpr int first_tag = 16384;
  static constexpr std::uint64_t tags = 1800;
};

/// The tag of NodeMessages on the communicator of a group.
inline constexpr int node_tag = 19992;

/// The tags of the messages between the nodes of a group (see levels::PeerMessages).
/// @param is_odd  whether the number of the chunk is odd: two chunks can be in flight.
[[nodiscard]] constexpr int level_tag(bool is_odd) { return is_odd ? 19991 : 19990; }

}  // namespace rankmesh::detail
