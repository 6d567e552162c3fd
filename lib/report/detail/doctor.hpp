// SPDX-License-Identifier: BSD-3-Clause
// The rules of doctor, and what they share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/layout/rank_set.hpp"
#include "report/doctor.hpp"

namespace rankmesh::report::detail {

using RankList = std::vector<std::int64_t>;
using Members = std::vector<const RankFacts*>;

// The rules of the three files doctor_*.cpp. Their findings are reported in this order.
std::span<const Rule> process_rules();
std::span<const Rule> node_rules();
std::span<const Rule> device_rules();

/// The ranks that have the same value.
struct Variant {
  std::string value;
  RankList ranks;
};

/// Returns the distinct values of the ranks, and the ranks of each; the rarest value first.
std::vector<Variant> variants(const Examination& job,
                              const std::function<std::string(const RankFacts&)>& value);

/// Returns that the ranks have different values; nothing if all have the same one.
/// @param what    what differs, in front of the values.
/// @param detail  as Found::detail.
std::vector<Found> differing(const std::vector<Variant>& values, std::string_view what,
                             std::string detail = {});

/// Returns what is found for each item of a list.
template <class List, class Find>
std::vector<Found> of_each(const List& list, Find&& find) {
  std::vector<Found> all;
  for (const auto& item : list)
    for (Found& found : find(item)) all.push_back(std::move(found));
  return all;
}

/// Returns the ranks that meet a condition.
Members members_with(const Examination& job,
                     const std::function<bool(const RankFacts&)>& condition);

/// Returns what the members have in common, if there are any.
/// @param what  a text, or a function of the members that returns it.
template <class What>
std::vector<Found> of_members(const Members& members, What&& what);

/// Returns the ranks of each node, as pointers to their facts.
std::map<std::int32_t, Members> by_node(const Examination& job);

/// Returns the ranks of members.
RankList ranks_of(const Members& members);

/// Returns the cores that members are allowed to use.
std::set<int> cores_of(const Members& members);

/// Returns the ranks as a set.
RankSet set_of(const RankList& ranks);

/// Returns "rank 3" or "ranks 0-1,3".
std::string ranks_text(const RankList& ranks);

/// Returns the first texts of a list, and how many others there are.
std::string first_of(const std::vector<std::string>& texts, std::string_view rest);

/// Returns the value of a variable; nothing if it is not set or empty.
std::optional<std::string> variable(const RankFacts& facts, const std::string& name);

/// Returns a size such as "64 KiB" or "1.5 GiB", or "unlimited" for -1.
std::string size_text(std::int64_t bytes);

template <class What>
std::vector<Found> of_members(const Members& members, What&& what) {
  if (members.empty()) return {};
  if constexpr (std::is_invocable_v<What, const Members&>)
    return {{ranks_of(members), what(members)}};
  else
    return {{ranks_of(members), std::forward<What>(what)}};
}

}  // namespace rankmesh::report::detail
