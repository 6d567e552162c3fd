#include "rankmesh/wait/wait_point.hpp"

#include <numeric>
#include <utility>

#include "rankmesh/base/hash.hpp"

namespace rankmesh {

WaitPoint WaitPoint::of(const RankSet& ranks, std::string activity, std::string_view identity) {
  WaitPoint point{hash_bytes(identity).low, std::move(activity), {}};
  point.members.reserve(static_cast<std::size_t>(ranks.size()));
  for (const Rank rank : ranks) point.members.push_back(static_cast<int>(rank.value()));
  return point;
}

WaitPoint WaitPoint::of_all(int count, std::string activity) {
  WaitPoint point{hash_bytes(activity).low, std::move(activity),
                  std::vector<int>(static_cast<std::size_t>(count))};
  std::iota(point.members.begin(), point.members.end(), 0);
  return point;
}

}  // namespace rankmesh
