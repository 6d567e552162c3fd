// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/meeting.hpp"

#include <cstring>

#include "transport/shm/blocks.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

namespace {

// The payload of a meeting consists of words, see block_counts.hpp.
using Word = detail::CallWord;

Word word_of(const Meeting& meeting, std::int64_t i) {
  return i == 0 ? (meeting.is_async ? 1 : 0) : detail::block_word(meeting, i);
}

void publish_words(const Group& group, const Step& step) {
  const auto& call = static_cast<const Meeting&>(step.call);
  std::byte* to = group.payload(group.self, step);
  for (std::int64_t i = step.at; i < step.at + step.count; ++i, to += sizeof(Word)) {
    const Word word = word_of(call, i);
    std::memcpy(to, &word, sizeof word);
  }
}

// A step carries all counts, unless a group has more members than fit into a slot. Then counts
// in different steps are not compared with each other.
bool words_agree(const Group& group, const Step& step) {
  const auto& call = static_cast<const Meeting&>(step.call);
  const auto word = [&](std::int64_t member, std::int64_t i) {
    return published_word(group, step, static_cast<std::size_t>(member), i);
  };
  const auto size = static_cast<std::int64_t>(group.size);
  if (step.at == 0)
    for (std::int64_t k = 0; k < size; ++k)
      if (word(k, 0) != 0) call.any_is_async = true;
  return !call.has_blocks() || detail::all_block_counts_agree(call.operation, call.root.value(),
                                                              static_cast<std::int64_t>(group.self),
                                                              size, step.at, step.count, word);
}

}  // namespace

extern constexpr Algorithm meeting{
    .name = "meeting",
    .operation = Operation::barrier,  // no operation of its own: it precedes any of them
    .forms = CallDescriptor::meeting,
    .payload =
        [](const Group& group, const Call& call) {
          return Payload{detail::call_words(call, static_cast<std::int64_t>(group.size)),
                         sizeof(Word)};
        },
    .first = {.publish = publish_words, .agrees = words_agree},
    .run_small = run_in_one_step<meeting>,
};

}  // namespace rankmesh::shm
