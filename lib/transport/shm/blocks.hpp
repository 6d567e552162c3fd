// SPDX-License-Identifier: BSD-3-Clause
// Parts that algorithms share in which members have a block for each member, and words, which a
// comparison step (see meeting.hpp) consists of.
//
// Every step carries equally many elements of each block, so a member finds its block without the
// counts of the others. With equal blocks, these elements follow each other in the payload. A
// v-form does the same, except that some blocks end earlier, and that the payload of its first step
// begins with the words (see block_counts.hpp), which contain the counts. All members wait for all
// others, even in gather and scatter, because only the counts of all members tell how long the
// longest block is. If a block is longer than the first step can carry, either more steps follow,
// without counts, or another transport carries the call.
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

/// Returns the bytes of the words of a v-form.
[[nodiscard]] std::size_t bytes_of_counts(const Group& group, const Call& call);
/// Returns where the elements of block `k` begin in a payload; 0 for k if there is only one block.
[[nodiscard]] inline std::size_t part_offset(const Group& group, const Step& step, std::size_t k) {
  const std::size_t part = static_cast<std::size_t>(step.count) * size_of(step.call.in.type);
  const bool has_counts = step.at == 0 && step.call.has_blocks();
  return (has_counts ? bytes_of_counts(group, step.call) : 0) + k * part;
}
/// Copies the part of a block that the step carries to a payload.
inline void copy_part(const Step& step, std::byte* to, const ConstBuffer& block) {
  if (const std::int64_t count = count_in(step, block.count); count != 0)
    copy_bytes(to, element(block, step.at), static_cast<std::size_t>(count) * size_of(block.type));
}
/// Copies the part of a block that the step carries from a payload.
inline void take_part(const Step& step, const Buffer& block, const std::byte* from) {
  if (const std::int64_t count = count_in(step, block.count); count != 0)
    copy_bytes(element(block, step.at), from,
               static_cast<std::size_t>(count) * size_of(block.type));
}

/// The payload of algorithms in which a member publishes a block for each member, and each block is
/// as long as the output.
[[nodiscard]] inline Payload payload_of_blocks(const Group& group, const Call& call) {
  return {call.out.count, size_of(call.out.type) * group.size};
}
/// Publishes a part of each block of the input; in a scatter, only the root does.
void publish_blocks(const Group& group, const Step& step);
/// Copies the part of each member's only block to that member's block of the output. The part of
/// this member comes from its input.
void collect_blocks(const Group& group, const Step& step);
/// Copies the parts that are meant for this member to its output.
void exchange_blocks(const Group& group, const Step& step);

/// The payloads of v-forms in which a member publishes one block, or a block for each member.
[[nodiscard]] Payload payload_of_own_block(const Group& group, const Call& call);
[[nodiscard]] Payload payload_of_all_blocks(const Group& group, const Call& call);
/// Publishes a part of the input of a v-form, which is one block.
void publish_own_block(const Group& group, const Step& step);
/// Returns whether the counts of all members agree. @see Phase::agrees
[[nodiscard]] bool counts_agree(const Group& group, const Step& step);
/// Reads the counts of all members. @see Algorithm::lengths
[[nodiscard]] Lengths lengths_of_blocks(const Group& group, const Step& step);

/// Returns the v-form of an algorithm. Its first step carries the counts, for which all members
/// wait.
constexpr Algorithm v_form_of(Algorithm algorithm, std::string_view name,
                              Payload (*payload)(const Group&, const Call&),
                              void (*publish)(const Group&, const Step&)) {
  algorithm.name = name;
  algorithm.payload = payload;
  algorithm.lengths = lengths_of_blocks;
  algorithm.first.flow = Flow::all_to_all;
  algorithm.first.publish = publish;
  algorithm.first.agrees = counts_agree;
  algorithm.run_small = nullptr;
  return algorithm;
}

}  // namespace rankmesh::shm
