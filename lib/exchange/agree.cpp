// SPDX-License-Identifier: BSD-3-Clause
#include "detail/agree.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/rank_texts.hpp"

namespace rankmesh::exchange::detail {
namespace {

using Words = std::vector<std::int64_t>;

constexpr std::size_t text_bytes = 1024;  // of one member, with the 0 at its end

// The calls have the form with _async, whose waits have a deadline on every transport.
void all_reduce_max(GroupCoordinator& group, Words& words) {
  run_or_leak([&] { group.all_reduce_async(words, ReduceOp::max).wait(); }, words);
}

// A word and its complement: their maxima over the members are complements of each other only if
// the word is the same on all members.
void add(Words& words, std::uint64_t word) {
  words.push_back(static_cast<std::int64_t>(word));
  words.push_back(static_cast<std::int64_t>(~word));
}
void add_different(Words& words) { words.insert(words.end(), 2, INT64_MAX); }
bool is_same(const Words& maxima, std::size_t i) { return maxima[2 * i] == ~maxima[2 * i + 1]; }

// Returns the first entry that differs; the first one if none does, and nothing if no member has
// entries. Entries that a member lacks differ.
std::optional<std::size_t> first_difference(GroupCoordinator& group,
                                            const std::vector<std::string>& entries) {
  Words longest{std::ssize(entries)};
  all_reduce_max(group, longest);
  const auto count = static_cast<std::size_t>(longest[0]);
  Words words;
  for (const std::string& entry : entries) add(words, hash_bytes(entry).low);
  while (words.size() < 2 * count) add_different(words);
  if (count > 0) all_reduce_max(group, words);
  for (std::size_t i = 0; i < count; ++i)
    if (!is_same(words, i)) return i;
  return count > 0 ? std::optional<std::size_t>{0} : std::nullopt;
}

std::string text_of(const Comparison& mine, const Arguments& arguments,
                    std::optional<std::size_t> entry) {
  if (mine.failure == nullptr && !entry) return arguments.function;
  if (mine.failure == nullptr)
    return *entry < arguments.entries.size()
               ? fmt::format("{}: {}", arguments.function, arguments.entries[*entry])
               : arguments.function + ": no more entries";
  try {
    std::rethrow_exception(mine.failure);
  } catch (const Error& error) {
    return "failed: " + error.message();
  }
}

}  // namespace

Hash128 hash_of(const Arguments& arguments) {
  std::string text;
  for (const std::string& entry : arguments.entries) text.append(entry).push_back('\0');
  return hash_bytes(text);
}

void agree(GroupCoordinator& group, const std::optional<Hash128>& hash, const Comparison& mine,
           std::span<std::int64_t> maxima) {
  auto& runtime = rankmesh::detail::GroupAccess::runtime(group);
  const rankmesh::detail::CalledBy by{runtime, mine.function};
  // In a batch, the operations begin when this function and its memory are gone.
  rankmesh::detail::GroupAccess::require_no_batch(group, to_string(runtime.caller));
  Words words;
  words.reserve(maxima.size() + 4);
  const bool is_valid = hash && mine.failure == nullptr;
  for (const std::uint64_t word : {is_valid ? hash->high : 0, is_valid ? hash->low : 0})
    is_valid ? add(words, word) : add_different(words);
  words.insert(words.end(), maxima.begin(), maxima.end());
  all_reduce_max(group, words);
  if (!is_same(words, 0) || !is_same(words, 1)) throw_difference(group, mine);
  std::ranges::copy(words.begin() + 4, words.end(), maxima.begin());
}

void throw_difference(GroupCoordinator& group, const Comparison& mine) {
  const rankmesh::detail::CalledBy by{rankmesh::detail::GroupAccess::runtime(group), mine.function};
  const Arguments arguments = mine.describe();
  const std::string text = text_of(mine, arguments, first_difference(group, arguments.entries));
  std::vector<char> own(text_bytes);
  std::memcpy(own.data(), text.data(), std::min(text.size(), text_bytes - 1));
  std::vector<char> all(text_bytes * static_cast<std::size_t>(group.size()));
  run_or_leak([&] { group.all_gather_async(own, all).wait(); }, own, all);
  if (mine.failure != nullptr) std::rethrow_exception(mine.failure);
  std::vector<std::pair<Rank, std::string>> texts;
  for (std::int64_t r = 0; r < group.size(); ++r)
    texts.emplace_back(group.ranks().at(r), all.data() + static_cast<std::size_t>(r) * text_bytes);
  const auto& control = rankmesh::detail::GroupAccess::runtime(group).control;
  throw MismatchError{fmt::format("the ranks do not agree: {}",
                                  rankmesh::detail::list_texts(texts, control->names)),
                      mine.hint, false};
}

}  // namespace rankmesh::exchange::detail
