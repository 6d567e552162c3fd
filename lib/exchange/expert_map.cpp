// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/expert_map.hpp"

#include <limits>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::exchange {

ExpertMap ExpertMap::contiguous(std::int64_t experts, std::int64_t ranks) {
  if (experts < 1 || ranks < 1)
    throw UsageError{
        fmt::format("an expert map cannot have {} experts on {} ranks", experts, ranks),
        "use at least one expert and one rank"};
  const std::int64_t per_rank = (experts + ranks - 1) / ranks;
  std::vector<std::int32_t> slots(static_cast<std::size_t>(per_rank * ranks), empty);
  for (std::int64_t e = 0; e < experts; ++e)
    slots[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(e);
  return {std::move(slots), experts, ranks};
}

ExpertMap::ExpertMap(std::vector<std::int32_t> physical_to_logical, std::int64_t experts,
                     std::int64_t ranks)
    : logical_{std::move(physical_to_logical)}, ranks_{ranks} {
  if (experts < 1 || ranks < 1 || experts > std::numeric_limits<std::int32_t>::max())
    throw UsageError{
        fmt::format("an expert map cannot have {} experts on {} ranks", experts, ranks),
        "use at least one expert and one rank, and at most 2^31-1 experts"};
  if (logical_.size() % static_cast<std::size_t>(ranks) != 0)
    throw UsageError{fmt::format("{} slots of an expert map cannot be divided by {} ranks",
                                 logical_.size(), ranks),
                     "give every rank the same number of slots; -1 is an empty slot"};
  // A counting sort of the slots by expert: count them, find where each expert begins, list them.
  first_.resize(static_cast<std::size_t>(experts) + 1);
  for (std::size_t p = 0; p < logical_.size(); ++p) {
    const std::int32_t e = logical_[p];
    if (e == empty) continue;
    if (e < 0 || e >= experts)
      throw UsageError{
          fmt::format("slot {} of an expert map holds expert {}", p, e),
          fmt::format("use experts from 0 to {}, or -1 for an empty slot", experts - 1)};
    ++first_[static_cast<std::size_t>(e) + 1];
  }
  for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e) {
    if (first_[e + 1] == 0)
      throw UsageError{fmt::format("an expert map has no slot for expert {}", e),
                       "give every logical expert at least one slot"};
    first_[e + 1] += first_[e];
  }
  replicas_.resize(first_.back());
  std::vector<std::size_t> next{first_};
  for (std::size_t p = 0; p < logical_.size(); ++p)
    if (logical_[p] != empty)
      replicas_[next[static_cast<std::size_t>(logical_[p])]++] = static_cast<std::int32_t>(p);
}

}  // namespace rankmesh::exchange
