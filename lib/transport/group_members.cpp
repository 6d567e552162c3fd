// SPDX-License-Identifier: BSD-3-Clause
#include "detail/group_members.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "wait/detail/rank_texts.hpp"

namespace rankmesh::detail {

std::string GroupMembers::text_of(const CallDescriptor& call, std::uint64_t number,
                                  const std::string& counts) const {
  return fmt::format("{}, call {}", to_string(call, name_of(call.name_index()), counts), number);
}

std::string GroupMembers::text_of_departure(std::uint64_t calls, std::string_view why) const {
  const std::string& name = coordinators.front();
  return why.empty() ? fmt::format("close of {} after {} calls", name, calls)
                     : fmt::format("{}, after {} calls of {}", why, calls, name);
}

std::string GroupMembers::list(const std::vector<std::string>& calls,
                               const BlockCounts* counts) const {
  std::vector<std::size_t> order(calls.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<Rank, std::string>> texts;
  if (counts != nullptr) {
    // The text with the most conflicts comes first. list_texts() puts the first text of a tie last,
    // so the text with the fewest conflicts is rotated to the front.
    std::ranges::sort(order, std::greater{}, [&](std::size_t k) {
      return std::pair{counts->conflicts(k), k};
    });
    std::ranges::rotate(order, order.end() - 1);
  }
  for (const std::size_t k : order)
    if (!calls[k].empty()) texts.emplace_back(ranks.at(static_cast<std::int64_t>(k)), calls[k]);
  return list_texts(texts, names);
}

MismatchError different_calls(std::string text) {
  std::string hint =
      "make the same calls, with the same arguments and in the same order, on all members of the "
      "group";
  if (text.find("outside shared memory") != std::string::npos)
    hint +=
        "; if only some members make a call outside shared memory, they have chosen different "
        "transports: supports() of a transport must have the same result on all members";
  return {std::move(text), std::move(hint), false};
}

}  // namespace rankmesh::detail
