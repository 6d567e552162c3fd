// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transfer/assignment.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "detail/assignment_problem.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using detail::HeldList;

constexpr std::size_t most_exact = 1024;  // classes on either side
constexpr std::int64_t most_bytes = std::int64_t{1} << 62;

void validate(std::int64_t coordinates, std::int64_t ranks, std::span<const HeldBytes> held) {
  if (coordinates < 0 || coordinates > ranks)
    throw UsageError{
        fmt::format("{} coordinates cannot be assigned to {} ranks", coordinates, ranks),
        "use at least as many ranks as coordinates"};
  std::int64_t left = most_bytes;
  for (const HeldBytes& entry : held) {
    if (entry.coordinate < 0 || entry.coordinate >= coordinates || entry.rank < 0 ||
        entry.rank >= ranks)
      throw UsageError{fmt::format("coordinate {} on rank {} is outside of {} coordinates and {} "
                                   "ranks",
                                   entry.coordinate, entry.rank, coordinates, ranks),
                       "number both from 0"};
    if (entry.bytes < 0 || entry.bytes > left)
      throw UsageError{fmt::format("rank {} holds {} bytes for coordinate {}", entry.rank,
                                   entry.bytes, entry.coordinate),
                       "use 0 bytes or more, and fewer than 2^62 in all"};
    left -= entry.bytes;
  }
}

// Sorts each list, adds up equal numbers, and leaves out zeros.
void normalise(std::vector<HeldList>& lists) {
  for (HeldList& list : lists) {
    std::ranges::sort(list);
    HeldList merged;
    for (const auto& [number, bytes] : list) {
      if (bytes == 0) continue;
      if (!merged.empty() && merged.back().first == number)
        merged.back().second += bytes;
      else
        merged.emplace_back(number, bytes);
    }
    list = std::move(merged);
  }
}

// Members with equal lists.
struct EqualMembers {
  std::vector<std::vector<std::int64_t>> members;
  std::vector<std::size_t> class_of;  // of each member

  explicit EqualMembers(const std::vector<HeldList>& lists) {
    std::map<HeldList, std::size_t> known;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const auto [place, is_new] = known.emplace(lists[i], members.size());
      if (is_new) members.emplace_back();
      members[place->second].push_back(static_cast<std::int64_t>(i));
      class_of.push_back(place->second);
    }
  }
  [[nodiscard]] std::vector<std::int64_t> sizes() const {
    std::vector<std::int64_t> result;
    for (const auto& list : members) result.push_back(std::ssize(list));
    return result;
  }
};

std::vector<std::size_t> assign_classes(const std::vector<HeldList>& lists,
                                        const EqualMembers& rows, const EqualMembers& columns) {
  detail::ClassProblem problem{rows.sizes(), columns.sizes(), {}};
  const std::size_t width = columns.members.size();
  problem.held.resize(rows.members.size() * width);
  for (std::size_t i = 0; i < rows.members.size(); ++i)
    for (const auto& [rank, bytes] : lists[static_cast<std::size_t>(rows.members[i].front())])
      problem.held[i * width + columns.class_of[rank]] = bytes;
  std::vector<std::size_t> rank_of(lists.size());
  auto next_row = std::vector<std::size_t>(rows.members.size());
  auto next_column = std::vector<std::size_t>(width);
  for (const detail::ClassFlow& flow : detail::solve_exactly(problem))
    for (std::int64_t n = 0; n < flow.count; ++n) {
      const std::int64_t coordinate = rows.members[flow.row][next_row[flow.row]++];
      const std::int64_t rank = columns.members[flow.column][next_column[flow.column]++];
      rank_of[static_cast<std::size_t>(coordinate)] = static_cast<std::size_t>(rank);
    }
  return rank_of;
}

std::int64_t kept_bytes(const std::vector<HeldList>& lists,
                        const std::vector<std::size_t>& rank_of) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < lists.size(); ++i)
    for (const auto& [rank, bytes] : lists[i])
      if (rank == rank_of[i]) sum += bytes;
  return sum;
}

}  // namespace

Assignment assign_ranks(std::int64_t coordinates, std::int64_t ranks,
                        std::span<const HeldBytes> held) {
  validate(coordinates, ranks, held);
  // Coordinates that do not exist, and need nothing, get the ranks that are left.
  std::vector<HeldList> lists(static_cast<std::size_t>(ranks));
  for (const HeldBytes& entry : held)
    lists[static_cast<std::size_t>(entry.coordinate)].emplace_back(entry.rank, entry.bytes);
  normalise(lists);
  const EqualMembers rows{lists};
  std::vector<HeldList> of_ranks(lists.size());
  for (std::size_t i = 0; i < rows.members.size(); ++i)
    for (const auto& [rank, bytes] : lists[static_cast<std::size_t>(rows.members[i].front())])
      of_ranks[rank].emplace_back(i, bytes);
  const EqualMembers columns{of_ranks};

  Assignment result;
  std::vector<std::size_t> rank_of;
  if (rows.members.size() <= most_exact && columns.members.size() <= most_exact) {
    rank_of = assign_classes(lists, rows, columns);
    result.kept = result.bound = kept_bytes(lists, rank_of);
    result.how = "exact";
  } else {
    std::vector<const HeldList*> pointers;
    for (const HeldList& list : lists) pointers.push_back(&list);
    detail::AuctionResult found = detail::auction(pointers);
    rank_of = std::move(found.rank_of);
    result.kept = kept_bytes(lists, rank_of);
    result.bound = found.bound;
    result.how = "auction";
  }
  result.rank_of.assign(rank_of.begin(), rank_of.begin() + coordinates);
  return result;
}

}  // namespace rankmesh
