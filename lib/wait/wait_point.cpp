// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/wait_point.hpp"

#include <numeric>
#include <utility>

#include "rankmesh/base/hash.hpp"

namespace rankmesh {

WaitPoint WaitPoint::of(std::vector<int> members, std::string activity, std::string_view identity) {
  return {hash_bytes(identity).low, std::move(activity), std::move(members)};
}

WaitPoint WaitPoint::of(const RankSet& ranks, std::string activity, std::string_view identity) {
  std::vector<int> members;
  members.reserve(static_cast<std::size_t>(ranks.size()));
  for (const Rank rank : ranks) members.push_back(static_cast<int>(rank.value()));
  return of(std::move(members), std::move(activity), identity);
}

WaitPoint WaitPoint::of_all(int count, std::string activity) {
  std::vector<int> members(static_cast<std::size_t>(count));
  std::iota(members.begin(), members.end(), 0);
  const std::string identity = activity;
  return of(std::move(members), std::move(activity), identity);
}

}  // namespace rankmesh
