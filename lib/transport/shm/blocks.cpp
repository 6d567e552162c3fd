// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"

namespace rankmesh::shm {
namespace {

using Word = detail::CallWord;

std::int64_t size_of_group(const Group& group) { return static_cast<std::int64_t>(group.size); }

// What fits into a slot beside the counts. If nothing does, Engine::can() refuses the call.
Payload payload_beside_counts(const Group& group, const Call& call, std::size_t unit) {
  const std::size_t counts = bytes_of_counts(group, call);
  if (counts > group.slot_bytes) return {0, unit};
  return {static_cast<std::int64_t>((group.slot_bytes - counts) / unit), unit};
}

void publish_counts(const Group& group, const Step& step) {
  if (step.at == 0)
    publish_words(group, step, 0, detail::call_words(step.call, size_of_group(group)));
}

// Calls use(k, block) for the block of each member in a buffer. Equal blocks have `equal` elements.
template <class B, class Use>
void for_each_block(const Group& group, const B& buffer, const Blocks* blocks, std::int64_t equal,
                    Use&& use) {
  for (std::size_t k = 0; k < group.size; ++k)
    use(k, blocks != nullptr ? block_of(buffer, blocks, k)
                             : buffer.slice(static_cast<std::int64_t>(k) * equal, equal));
}

}  // namespace

void publish_words(const Group& group, const Step& step, std::int64_t first, std::int64_t count) {
  std::byte* to = group.payload(group.self, step);
  for (std::int64_t i = first; i < first + count; ++i, to += sizeof(Word)) {
    const Word word = detail::call_word(step.call, i);
    std::memcpy(to, &word, sizeof word);
  }
}

bool words_agree(const Group& group, const Step& step, std::int64_t first, std::int64_t count) {
  return detail::all_block_counts_agree(
      step.call.operation, step.call.root.value(), static_cast<std::int64_t>(group.self),
      size_of_group(group), first, count, [&](std::int64_t member, std::int64_t i) {
        return published_word(group, step, static_cast<std::size_t>(member), i);
      });
}

bool any_is_async(const Group& group, const Step& step) {
  for (std::size_t k = 0; k < group.size; ++k)
    if (published_word(group, step, k, 0) != 0) return true;
  return false;
}

Payload payload_of_own_block(const Group& group, const Call& call) {
  return payload_beside_counts(group, call, size_of(call.in.type));
}

Payload payload_of_all_blocks(const Group& group, const Call& call) {
  return payload_beside_counts(group, call, size_of(call.in.type) * group.size);
}

std::size_t bytes_of_counts(const Group& group, const Call& call) {
  return sizeof(Word) * static_cast<std::size_t>(detail::call_words(call, size_of_group(group)));
}

void publish_own_block(const Group& group, const Step& step) {
  publish_counts(group, step);
  copy_part(step, group.payload(group.self, step) + part_offset(group, step, 0), step.call.in);
}

void publish_blocks(const Group& group, const Step& step) {
  publish_counts(group, step);
  const Call& call = step.call;
  if (has_root(call.operation) && !is_root(group, call)) return;
  std::byte* const payload = group.payload(group.self, step);
  for_each_block(group, call.in, call.in_blocks, call.in.count / size_of_group(group),
                 [&](std::size_t k, const ConstBuffer& block) {
                   copy_part(step, payload + part_offset(group, step, k), block);
                 });
}

void collect_blocks(const Group& group, const Step& step) {
  const Call& call = step.call;
  for_each_block(
      group, call.out, call.out_blocks, call.in.count, [&](std::size_t k, const Buffer& block) {
        take_part(step, block,
                  k == group.self ? element(call.in, step.at)
                                  : group.payload(k, step) + part_offset(group, step, 0));
      });
}

void exchange_blocks(const Group& group, const Step& step) {
  const Call& call = step.call;
  for_each_block(group, call.out, call.out_blocks, call.out.count / size_of_group(group),
                 [&](std::size_t k, const Buffer& block) {
                   take_part(step, block,
                             group.payload(k, step) + part_offset(group, step, group.self));
                 });
}

bool counts_agree(const Group& group, const Step& step) {
  return step.at != 0 ||
         words_agree(group, step, 0, detail::call_words(step.call, size_of_group(group)));
}

// In a gather or scatter the counts of the root decide. In an all_to_all every member knows its own
// blocks only. In the other operations, all members have the same counts.
Lengths lengths_of_blocks(const Group& group, const Step& step) {
  const Call& call = step.call;
  const bool is_all_to_all = call.operation == Operation::all_to_all;
  const std::size_t first = is_all_to_all              ? 0
                            : has_root(call.operation) ? root_of(call)
                                                       : group.self;
  const std::size_t end = is_all_to_all ? group.size : first + 1;
  Lengths lengths{0, any_is_async(group, step)};
  for (std::size_t k = first; k < end; ++k)
    for (std::int64_t i = 1; i <= size_of_group(group); ++i)
      lengths.longest = std::max(lengths.longest, published_word(group, step, k, i));
  return lengths;
}

}  // namespace rankmesh::shm
