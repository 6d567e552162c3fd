// SPDX-License-Identifier: BSD-3-Clause
// What the algorithms in symmetric memory share. The payload of a member contains the positions of
// its buffers. The other members then read and write these buffers directly.
//
// All of these algorithms have two phases. In the first phase, the members exchange the positions
// of their buffers and do the work. The second phase has no payload: when a member has seen its
// numbers, the other members no longer use the member's buffers, and the caller may use them again.
#pragma once

#include "transport/shm/algorithm.hpp"

namespace rankmesh::shm {

[[nodiscard]] inline bool lies_in_window(const SymmetricWindow* window, const void* group) {
  return window != nullptr && window->serves(group);
}

/// The payload of a symmetric algorithm: where the buffers of a member begin in its part of the
/// window. Members may pass different positions.
struct BufferOffsets {
  std::uint64_t in, out;
};
[[nodiscard]] inline Payload payload_of_offsets(const Group&, const Call&) {
  return {1, sizeof(BufferOffsets)};
}
void publish_offsets(const Group& group, const Step& step);

/// Returns where the input (or output) buffer of a member begins in the memory of this process.
[[nodiscard]] const std::byte* input_of(const Group& group, const Step& step, std::size_t member);
[[nodiscard]] std::byte* output_of(const Group& group, const Step& step, std::size_t member);

}  // namespace rankmesh::shm
