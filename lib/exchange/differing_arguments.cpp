// SPDX-License-Identifier: BSD-3-Clause
#include "detail/differing_arguments.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/rank_texts.hpp"

namespace rankmesh::exchange::detail {
namespace {

constexpr std::size_t text_bytes = 400;  // of one member, with the 0 at its end
constexpr std::size_t printed_numbers = 8;

// The calls have the form with _async, whose waits have a deadline on every transport.
void all_reduce_max(GroupCoordinator& group, std::vector<std::int64_t>& values) {
  run_or_leak([&] { group.all_reduce_async(values, ReduceOp::max).wait(); }, values);
}

// Returns the first place in which the lists of the members differ, or the length of the longest
// list. After the end of a shorter list, the lists count as different.
std::size_t first_difference(GroupCoordinator& group, const std::vector<std::int64_t>& list) {
  std::vector<std::int64_t> length{static_cast<std::int64_t>(list.size())};
  all_reduce_max(group, length);
  const auto longest = static_cast<std::size_t>(length[0]);
  std::vector<std::int64_t> extremes(2 * longest);
  for (std::size_t i = 0; i < longest; ++i) {
    extremes[i] = i < list.size() ? list[i] : INT64_MIN / 2;
    extremes[longest + i] = -extremes[i];
  }
  if (longest > 0) all_reduce_max(group, extremes);
  std::size_t place = 0;
  while (place < longest && extremes[place] == -extremes[longest + place]) ++place;
  return place;
}

std::string text_of(const std::vector<std::int64_t>& list, std::size_t difference) {
  if (list.size() <= printed_numbers) return fmt::format("{}", fmt::join(list, ", "));
  std::string text = fmt::format(
      "{}, ...", fmt::join(list.begin(), list.begin() + std::ptrdiff_t{printed_numbers}, ", "));
  if (difference >= printed_numbers && difference < list.size())
    text += fmt::format("; number {} is {}", difference, list[difference]);
  return text;
}

std::string words_of(const MemberArguments& arguments, std::size_t difference) {
  if (arguments.failure == nullptr) return arguments.describe(text_of(arguments.list, difference));
  try {
    std::rethrow_exception(arguments.failure);
  } catch (const Error& error) {
    return "failed: " + error.message();
  }
}

}  // namespace

void throw_difference(GroupCoordinator& group, const MemberArguments& arguments,
                      const std::string& hint) {
  const std::string words = words_of(arguments, first_difference(group, arguments.list));
  std::vector<char> mine(text_bytes);
  std::memcpy(mine.data(), words.data(), std::min(words.size(), text_bytes - 1));
  std::vector<char> all(text_bytes * static_cast<std::size_t>(group.size()));
  run_or_leak([&] { group.all_gather_async(mine, all).wait(); }, mine, all);
  if (arguments.failure != nullptr) std::rethrow_exception(arguments.failure);
  std::vector<std::pair<Rank, std::string>> texts;
  for (std::int64_t r = 0; r < group.size(); ++r)
    texts.emplace_back(group.ranks().at(r), all.data() + static_cast<std::size_t>(r) * text_bytes);
  const auto& control = rankmesh::detail::GroupAccess::runtime(group).control;
  throw MismatchError{rankmesh::detail::list_texts(texts, control->names), hint, false};
}

}  // namespace rankmesh::exchange::detail
