// SPDX-License-Identifier: BSD-3-Clause
// How the members of a group compare the counts of a v-form.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/transport/call.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::detail {

/// What a member publishes next to the descriptor of a call: a row of words. Word 0 says whether
/// the member uses the form with _async; the others are the counts of a v-form, one per member.
/// all_to_all has two counts per member: first all counts of the input, then all counts of the
/// output.
using CallWord = std::int64_t;

/// Returns the number of words of a v-form in a group of `size` members.
inline std::int64_t v_form_words(Operation operation, std::int64_t size) {
  return 1 + (operation == Operation::all_to_all ? 2 * size : size);
}
/// Returns the number of words of a call in a group of `size` members.
inline std::int64_t call_words(const Call& call, std::int64_t size) {
  return call.has_blocks() ? v_form_words(call.operation, size) : 1;
}

/// Returns word `i` of a v-form, from 1.
inline CallWord block_word(const Call& call, std::int64_t i) {
  const auto& counts = (gathers(call.operation) ? call.out_blocks : call.in_blocks)->counts();
  const auto size = std::ssize(counts);
  if (i > size) return call.out_blocks->counts()[static_cast<std::size_t>(i - size - 1)];
  return counts[static_cast<std::size_t>(i - 1)];
}

/// Returns any word of a call.
inline CallWord call_word(const Call& call, std::int64_t i) {
  return i == 0 ? CallWord{call.is_async} : block_word(call, i);
}

/// Returns whether the counts of two members agree. Counts that belong to a third member are
/// compared where MPI needs them to be equal.
/// @param a, b          The numbers of the members in the group, which has `size` members.
/// @param first, count  The words that are compared.
/// @param of_a, of_b    Return word i of a member, for these words.
template <class OfA, class OfB>
bool block_counts_agree(Operation operation, std::int64_t root, std::int64_t a, std::int64_t b,
                        std::int64_t size, std::int64_t first, std::int64_t count, OfA&& of_a,
                        OfB&& of_b) {
  const std::int64_t end = first + count;
  const auto carries = [&](std::int64_t i) { return i >= first && i < end; };
  const auto is_equal = [&](std::int64_t i) { return !carries(i) || of_a(i) == of_b(i); };
  if (operation == Operation::all_to_all)
    // What b sends to a, and what b receives from a.
    return (!carries(a + 1) || !carries(size + b + 1) || of_b(a + 1) == of_a(size + b + 1)) &&
           (!carries(size + a + 1) || !carries(b + 1) || of_b(size + a + 1) == of_a(b + 1));
  if (has_root(operation)) {
    if (a == root) return is_equal(b + 1);
    return b != root || is_equal(a + 1);
  }
  for (std::int64_t i = std::max<std::int64_t>(first, 1); i < end; ++i)
    if (!is_equal(i)) return false;
  return true;
}

/// Returns whether the counts of all members agree. All members get the same result, so none of
/// them enters MPI while another one throws.
/// @param self     The number of this member in the group, which has `size` members.
/// @param word_of  word_of(member, i) returns word i of a member, for these words.
template <class WordOf>
bool all_block_counts_agree(Operation operation, std::int64_t root, std::int64_t self,
                            std::int64_t size, std::int64_t first, std::int64_t count,
                            WordOf&& word_of) {
  // In all_gather and reduce_scatter all rows must be equal, so it is sufficient to compare them
  // with the row of this member.
  const bool all_are_equal = !has_root(operation) && operation != Operation::all_to_all;
  for (std::int64_t a = all_are_equal ? self : 0; a < (all_are_equal ? self + 1 : size); ++a)
    for (std::int64_t b = 0; b < size; ++b)
      if (a != b && !block_counts_agree(
                        operation, root, a, b, size, first, count,
                        [&](std::int64_t i) { return word_of(a, i); },
                        [&](std::int64_t i) { return word_of(b, i); }))
        return false;
  return true;
}

/// The counts that the members of a group pass to a v-form, for messages.
class BlockCounts {
 public:
  /// @param words  The words of each member; null for members whose words are not known.
  BlockCounts(Operation operation, std::vector<const std::byte*> words)
      : operation_{operation}, words_{std::move(words)} {}

  /// Returns the counts of a member: `blocks of 3,4,5`. At most 8 counts are listed.
  [[nodiscard]] std::string text(std::size_t member, std::int64_t count) const;
  /// Returns the number of members whose counts conflict with the counts of this member. In an
  /// all_to_all, the counts of every pair of members must agree. For other operations, the result
  /// is 0.
  [[nodiscard]] std::size_t conflicts(std::size_t member) const;

 private:
  [[nodiscard]] CallWord word(std::size_t member, std::int64_t i) const;

  Operation operation_;
  std::vector<const std::byte*> words_;
};

}  // namespace rankmesh::detail
