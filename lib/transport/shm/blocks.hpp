// SPDX-License-Identifier: BSD-3-Clause
// Parts that the algorithms of v-forms share, and words, which a comparison step (see meeting.hpp)
// consists of.
//
// In the first step every member publishes its words (see block_counts.hpp), which contain the
// counts of its blocks, and behind them the beginnings of its blocks. All members wait for all
// others, even in gather and scatter, because only the counts of all members tell how long the
// longest block is. If a block is longer than the first step can carry, either more steps follow,
// without counts, or another transport carries the call. Every step has space for equally many
// elements of each block, so a member finds its block without the counts of the others.
#pragma once

#include <algorithm>

#include "transport/detail/block_counts.hpp"
#include "transport/shm/algorithm.hpp"

namespace rankmesh::shm {

/// Publishes words of the call, from the beginning of the payload on.
void publish_words(const Group& group, const Step& step, std::int64_t first, std::int64_t count);
/// Returns whether these words of all members agree.
[[nodiscard]] bool words_agree(const Group& group, const Step& step, std::int64_t first,
                               std::int64_t count);
/// Returns whether any member uses the form with _async. For the step that carries word 0.
[[nodiscard]] bool any_is_async(const Group& group, const Step& step);
/// Returns a word that a member has published in this step. The value is copied and not accessed
/// through a cast pointer, because an area holds bytes whose type changes from step to step.
[[nodiscard]] inline detail::CallWord published_word(const Group& group, const Step& step,
                                                     std::size_t member, std::int64_t i) {
  detail::CallWord word = 0;
  std::memcpy(&word,
              group.payload(member, step) + static_cast<std::size_t>(i - step.at) * sizeof word,
              sizeof word);
  return word;
}

/// Returns how many elements of a block of `block` elements the step carries.
[[nodiscard]] inline std::int64_t count_in(const Step& step, std::int64_t block) {
  return std::clamp<std::int64_t>(block - step.at, 0, step.count);
}

/// The payload of algorithms in which a member publishes one block.
[[nodiscard]] Payload payload_of_own_block(const Group& group, const Call& call);
/// The payload of algorithms in which a member publishes a block for each member.
[[nodiscard]] Payload payload_of_all_blocks(const Group& group, const Call& call);

/// Publishes a part of the input, which is one block.
void publish_own_block(const Group& group, const Step& step);
/// Publishes a part of each block of the input; in a scatter, only the root does.
void publish_all_blocks(const Group& group, const Step& step);
/// Returns where a member has published its part of the only block, or of block `k`.
[[nodiscard]] std::byte* part_at(const Group& group, const Step& step, std::size_t member,
                                 std::size_t k = 0);
/// Copies a part to block `k` of the output, or to the output if it is a single block.
void collect_part(const Step& step, std::size_t k, const std::byte* from);
/// Copies the part of each member's only block. The part of this member comes from its input.
void collect_parts(const Group& group, const Step& step);

/// Returns whether the counts of all members agree. @see Phase::agrees
[[nodiscard]] bool counts_agree(const Group& group, const Step& step);
/// Reads the counts of all members. @see Algorithm::lengths
[[nodiscard]] Lengths lengths_of_blocks(const Group& group, const Step& step);

}  // namespace rankmesh::shm
