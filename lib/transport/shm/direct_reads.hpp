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

/// The operations in which each member reduces a part of every piece divide a message into rows of
/// one element per member. A piece consists of several rows. Each member reduces as many
/// consecutive elements as the piece has rows.
[[nodiscard]] Payload payload_of_rows(const Group& group, const Call& call);
/// Returns the elements of a piece that a member reduces.
[[nodiscard]] Share part_of(const Group& group, const Step& step, std::size_t member);
/// Reduces this member's part of the piece into its slot. For the first phase, after
/// publish_address().
void reduce_part(const Group& group, const Step& step);
/// Copies the parts of all members from their slots to `out`. Belongs into the second phase.
void collect_parts(const Group& group, const Step& step, std::byte* out);

}  // namespace rankmesh::shm
