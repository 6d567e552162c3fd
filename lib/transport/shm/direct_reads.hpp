// SPDX-License-Identifier: BSD-3-Clause
// What the algorithms share in which members read each other's ordinary buffers.
//
// All of them have two phases. In the first phase of an operation's first piece, each member
// publishes the address of its input next to the number of the step. When a member has seen the
// numbers of the last second phase, the other members have finished reading its input.
#pragma once

#include "transport/shm/algorithm.hpp"

namespace rankmesh::shm {

/// Returns whether members that can read each other's buffers do so in calls whose inputs have this
/// size. It must be the same on all members.
[[nodiscard]] bool reads_directly(const Group& group, std::int64_t bytes);

/// Publishes the address of this member's input, in the step that begins the operation.
void publish_address(const Group& group, const Step& step);
/// Takes the addresses of all members, in the step that begins the operation.
void take_addresses(const Group& group, const Step& step);

/// Reduces `count` elements of the inputs of all members, from element `first` on, into `out`.
/// Returns false if a read has failed; Group::direct says why. The contents of `out` are then
/// undefined.
bool reduce_inputs(const Group& group, const Call& call, std::int64_t first, std::int64_t count,
                   std::byte* out);

}  // namespace rankmesh::shm
