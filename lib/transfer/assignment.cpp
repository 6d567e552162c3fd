// SPDX-License-Identifier: BSD-3-Clause
// Solves the assignment problem by an auction (Bertsekas 1988). Coordinates bid for ranks, whose
// prices rise. A coordinate accepts a rank if no other rank is better by more than `step`. The step
// becomes smaller from phase to phase; the prices are kept.
#include "rankmesh/transfer/assignment.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

// The bytes that ranks hold for one coordinate: pairs of a rank and bytes, in the order of the
// ranks.
using HeldList = std::vector<std::pair<std::size_t, std::int64_t>>;

constexpr std::int64_t most_bytes = std::int64_t{1} << 62;
constexpr std::size_t no_rank = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t lowest_gain = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t step_divisor = 5;
constexpr std::int64_t most_visits = 400'000'000;  // of list entries, in all phases
constexpr std::int64_t largest_scaled = std::int64_t{1} << 60;

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

// A rank and what a coordinate gains from it: the bytes that it holds minus its price.
struct Offer {
  std::size_t rank = no_rank;
  std::int64_t gain = lowest_gain;
};

class Auction {
 public:
  explicit Auction(const std::vector<HeldList>& held)
      : held_{held},
        members_{held.size()},
        prices_(members_),
        rank_of_(members_, no_rank),
        owner_(members_, no_rank) {
    for (std::size_t r = 0; r < members_; ++r) by_price_.emplace(0, r);
    std::vector<std::int64_t> best_of_rank(members_);
    for (const HeldList& list : held_) {
      std::int64_t best = 0;
      for (const auto& [rank, bytes] : list) {
        best = std::max(best, bytes);
        best_of_rank[rank] = std::max(best_of_rank[rank], bytes);
      }
      largest_ = std::max(largest_, best);
      bound_ += best;
    }
    std::int64_t of_ranks = 0;
    for (const std::int64_t best : best_of_rank) of_ranks += best;
    bound_ = std::min(bound_, of_ranks);
    // With these integers, the assignment is optimal once the step is 1.
    const auto exact = static_cast<std::int64_t>(members_) + 1;
    if (largest_ < largest_scaled / exact) scale_ = exact;
  }

  /// Returns the assignment of all coordinates.
  Assignment run() {
    for (std::int64_t step = std::max<std::int64_t>(1, largest_ * scale_ / step_divisor);;
         step = std::max<std::int64_t>(1, step / step_divisor)) {
      assign_all(step);
      bound_ = std::min(bound_, dual());
      if (step == 1 || kept() == bound_ || visits_ >= most_visits) break;
    }
    const std::int64_t sum = kept();
    return {{rank_of_.begin(), rank_of_.end()}, sum, bound_, sum == bound_ ? "exact" : "auction"};
  }

 private:
  // One phase: all coordinates get ranks.
  void assign_all(std::int64_t step) {
    std::ranges::fill(rank_of_, no_rank);
    std::ranges::fill(owner_, no_rank);
    std::vector<std::size_t> waiting(members_);
    for (std::size_t i = 0; i < members_; ++i) waiting[i] = members_ - 1 - i;
    while (!waiting.empty() && visits_ < most_visits) {
      const std::size_t bidder = waiting.back();
      waiting.pop_back();
      const std::size_t rank = bid(bidder, step);
      if (owner_[rank] != no_rank) {
        rank_of_[owner_[rank]] = no_rank;
        waiting.push_back(owner_[rank]);
      }
      owner_[rank] = bidder;
      rank_of_[bidder] = rank;
    }
    // The auction takes too long: the other coordinates get the remaining ranks.
    std::size_t rank = 0;
    for (const std::size_t coordinate : waiting) {
      while (owner_[rank] != no_rank) ++rank;
      owner_[rank] = coordinate;
      rank_of_[coordinate] = rank;
    }
  }

  // Raises the price of the rank that is best for a coordinate, until another rank is better by
  // `step`. Ranks that are not in the list hold 0 bytes, so only the cheapest of these ranks count.
  std::size_t bid(std::size_t bidder, std::int64_t step) {
    Offer best, second;
    const auto consider = [&](std::size_t rank, std::int64_t gain) {
      if (rank == best.rank) return;
      if (gain > best.gain)
        second = std::exchange(best, {rank, gain});
      else if (gain > second.gain)
        second = {rank, gain};
    };
    for (const auto& [rank, bytes] : held_[bidder]) consider(rank, bytes * scale_ - prices_[rank]);
    visits_ += std::ssize(held_[bidder]) + 2;
    int cheapest = 0;
    for (const auto& [price, rank] : by_price_) {
      consider(rank, -price);
      if (++cheapest == 2) break;
    }
    const std::int64_t rise = (second.rank == no_rank ? 0 : best.gain - second.gain) + step;
    by_price_.erase({prices_[best.rank], best.rank});
    prices_[best.rank] += rise;
    by_price_.emplace(prices_[best.rank], best.rank);
    return best.rank;
  }

  [[nodiscard]] std::int64_t kept() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < members_; ++i) {
      const HeldList& list = held_[i];
      const auto place = std::ranges::lower_bound(list, rank_of_[i], {},
                                                  [](const auto& entry) { return entry.first; });
      if (place != list.end() && place->first == rank_of_[i]) sum += place->second;
    }
    return sum;
  }

  // The value of the dual problem, in bytes: the sum of all prices and of the greatest gain of each
  // coordinate. Each term is small, but the sums may be large. Therefore the sums are formed in
  // bytes and remainders.
  [[nodiscard]] std::int64_t dual() const {
    const std::int64_t least = by_price_.begin()->first;
    std::int64_t whole = 0, rest = 0;
    const auto add = [&](std::int64_t value) {
      whole += value / scale_;
      rest += value % scale_;
    };
    // All prices are lowered by the least price, and all gains rise by the same amount.
    for (const std::int64_t price : prices_) add(price - least);
    for (const HeldList& list : held_) {
      std::int64_t gain = 0;  // of the cheapest rank
      for (const auto& [rank, bytes] : list)
        gain = std::max(gain, bytes * scale_ - (prices_[rank] - least));
      add(gain);
    }
    return whole + rest / scale_;
  }

  const std::vector<HeldList>& held_;
  std::size_t members_;
  std::int64_t scale_ = 1;
  std::int64_t largest_ = 0;
  std::int64_t bound_ = 0;
  std::int64_t visits_ = 0;
  std::vector<std::int64_t> prices_;
  std::set<std::pair<std::int64_t, std::size_t>> by_price_;
  std::vector<std::size_t> rank_of_, owner_;
};

}  // namespace

Assignment assign_ranks(std::int64_t coordinates, std::int64_t ranks,
                        std::span<const HeldBytes> held) {
  validate(coordinates, ranks, held);
  // Coordinates that do not exist, and need nothing, get the ranks that are left.
  std::vector<HeldList> lists(static_cast<std::size_t>(ranks));
  for (const HeldBytes& entry : held)
    lists[static_cast<std::size_t>(entry.coordinate)].emplace_back(entry.rank, entry.bytes);
  normalise(lists);
  Assignment result = Auction{lists}.run();
  result.rank_of.resize(static_cast<std::size_t>(coordinates));
  return result;
}

}  // namespace rankmesh
