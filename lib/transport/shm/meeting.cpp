// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/meeting.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

using detail::CallDescriptor;

namespace {

// The payload of a meeting consists of words: the first says whether the member uses the form with
// _async; the others are the counts of a v-form, one per member. all_to_all has two counts per
// member: first those of the input, then those of the output.
using Word = std::int64_t;

Word word_of(const Meeting& meeting, std::int64_t i) {
  if (i == 0) return meeting.is_async ? 1 : 0;
  const bool of_out =
      meeting.operation == Operation::all_gather || meeting.operation == Operation::gather;
  const auto& counts = (of_out ? meeting.out_blocks : meeting.in_blocks)->counts();
  const auto size = static_cast<std::int64_t>(counts.size());
  if (i > size) return meeting.out_blocks->counts()[static_cast<std::size_t>(i - size - 1)];
  return counts[static_cast<std::size_t>(i - 1)];
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

// Whether the counts of another member fit to the counts of this one, as far as the step carries
// them. Counts that belong to a third member are compared where MPI needs them to be equal.
bool counts_agree(const Group& group, const Step& step, std::size_t other) {
  const auto& call = static_cast<const Meeting&>(step.call);
  const auto self = static_cast<std::int64_t>(group.self);
  const auto carries = [&](std::int64_t i) { return i >= step.at && i < step.at + step.count; };
  const auto is_equal = [&](std::int64_t i) {
    return !carries(i) || published_word(group, step, other, i) == word_of(call, i);
  };
  switch (call.operation) {
    case Operation::all_gather:
    case Operation::reduce_scatter:
      for (std::int64_t i = std::max<std::int64_t>(step.at, 1); i < step.at + step.count; ++i)
        if (!is_equal(i)) return false;
      return true;
    case Operation::gather:
    case Operation::scatter:
      if (is_root(group, call)) return is_equal(static_cast<std::int64_t>(other) + 1);
      return other != root_of(call) || is_equal(self + 1);
    case Operation::all_to_all: {
      const auto size = static_cast<std::int64_t>(group.size);
      const auto theirs = static_cast<std::int64_t>(other) + 1;
      // What the other member sends to this one, and what it receives from it.
      return (!carries(self + 1) ||
              published_word(group, step, other, self + 1) == word_of(call, size + theirs)) &&
             (!carries(size + self + 1) ||
              published_word(group, step, other, size + self + 1) == word_of(call, theirs));
    }
    default:
      return true;
  }
}

bool counts_agree_with_all(const Group& group, const Step& step) {
  const auto& call = static_cast<const Meeting&>(step.call);
  for (std::size_t k = 0; k < group.size; ++k) {
    if (step.at == 0 && published_word(group, step, k, 0) != 0) call.any_is_async = true;
    if (call.has_blocks() && k != group.self && !counts_agree(group, step, k)) return false;
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
    return fmt::format("{}", fmt::join(counts.begin() + static_cast<std::ptrdiff_t>(first),
                                       counts.begin() + static_cast<std::ptrdiff_t>(first + size),
                                       ","));
  };
  if (!is_all_to_all) return "blocks of " + list(1);
  return "blocks of " + list(1) + " sent and " + list(1 + size) + " received";
}

extern constexpr Algorithm meeting{
    .name = "meeting",
    .operation = Operation::barrier,  // no operation of its own: it precedes any of them
    .payload =
        [](const Group& group, const Call& call) {
          const auto size = static_cast<std::int64_t>(group.size);
          const std::int64_t counts = call.operation == Operation::all_to_all ? 2 * size : size;
          return Payload{call.has_blocks() ? counts + 1 : 1, sizeof(Word)};
        },
    .first = {.publish = publish_words, .agrees = counts_agree_with_all},
    .run_small = run_in_one_step<meeting>,
};

}  // namespace rankmesh::shm
