// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/meeting.hpp"

#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "transport/detail/block_counts.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

using detail::CallDescriptor;

namespace {

// The payload of a meeting consists of words, see block_counts.hpp.
using Word = detail::CallWord;

Word word_of(const Meeting& meeting, std::int64_t i) {
  return i == 0 ? (meeting.is_async ? 1 : 0) : detail::block_word(meeting, i);
}

// Copied rather than cast: an area holds bytes, and their type changes from step to step.
Word published_word(const Group& group, const Step& step, std::size_t member, std::int64_t i) {
  Word word = 0;
  std::memcpy(&word,
              group.payload(member, step) + static_cast<std::size_t>(i - step.at) * sizeof word,
              sizeof word);
  return word;
}

void publish_words(const Group& group, const Step& step) {
  const auto& call = static_cast<const Meeting&>(step.call);
  std::byte* to = group.payload(group.self, step);
  for (std::int64_t i = step.at; i < step.at + step.count; ++i, to += sizeof(Word)) {
    const Word word = word_of(call, i);
    std::memcpy(to, &word, sizeof word);
  }
}

bool counts_agree_with_all(const Group& group, const Step& step) {
  const auto& call = static_cast<const Meeting&>(step.call);
  for (std::size_t k = 0; k < group.size; ++k) {
    if (step.at == 0 && published_word(group, step, k, 0) != 0) call.any_is_async = true;
    if (!call.has_blocks() || k == group.self) continue;
    if (!detail::block_counts_agree(
            call.operation, call.root.value(), static_cast<std::int64_t>(group.self),
            static_cast<std::int64_t>(k), static_cast<std::int64_t>(group.size), step.at,
            step.count, [&](std::int64_t i) { return word_of(call, i); },
            [&](std::int64_t i) { return published_word(group, step, k, i); }))
      return false;
  }
  return true;
}

}  // namespace

std::string counts_text(const CallDescriptor& call, const std::byte* payload, std::size_t size) {
  const bool is_all_to_all = call.operation() == Operation::all_to_all;
  const std::size_t words = 1 + (is_all_to_all ? 2 * size : size);
  if (!call.has(CallDescriptor::blocks)) return {};
  if (words * sizeof(Word) > inline_bytes) return fmt::format("own block of {}", call.count);
  std::vector<Word> counts(words);
  std::memcpy(counts.data(), payload, words * sizeof(Word));
  const auto list = [&](std::size_t first) {
    return fmt::format("{}",
                       fmt::join(counts.begin() + static_cast<std::ptrdiff_t>(first),
                                 counts.begin() + static_cast<std::ptrdiff_t>(first + size), ","));
  };
  if (!is_all_to_all) return "blocks of " + list(1);
  return "blocks of " + list(1) + " sent and " + list(1 + size) + " received";
}

extern constexpr Algorithm meeting{
    .name = "meeting",
    .operation = Operation::barrier,  // no operation of its own: it precedes any of them
    .payload =
        [](const Group& group, const Call& call) {
          return Payload{detail::call_words(call, static_cast<std::int64_t>(group.size)),
                         sizeof(Word)};
        },
    .first = {.publish = publish_words, .agrees = counts_agree_with_all},
    .run_small = run_in_one_step<meeting>,
};

}  // namespace rankmesh::shm
