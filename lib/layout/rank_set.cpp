// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/rank_set.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

[[noreturn]] void refuse(std::string_view why) {
  throw UsageError{fmt::format("the modes do not describe a set of ranks: {}", why)};
}

std::int64_t product_or_refuse(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) refuse("the numbers overflow 64 bits");
  return result;
}

std::int64_t sum_or_refuse(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) refuse("the numbers overflow 64 bits");
  return result;
}

// Finds modes that describe a list of ranks, or nothing. The innermost mode is the longest run of
// equal steps at the beginning; it must divide the list and repeat in every block. The outer modes
// are found in the same way from the first elements of the blocks.
std::optional<std::vector<Mode>> modes_of(std::span<const Rank> ranks) {
  std::vector<Mode> modes;  // innermost first
  std::vector<std::int64_t> level;
  for (const Rank rank : ranks) level.push_back(rank.value());
  while (level.size() > 1) {
    const std::int64_t step = level[1] - level[0];
    std::size_t run = 2;
    while (run < level.size() && level[run] - level[run - 1] == step) ++run;
    if (level.size() % run != 0) return std::nullopt;
    std::vector<std::int64_t> starts;
    for (std::size_t block = 0; block < level.size(); block += run) {
      for (std::size_t i = 1; i < run; ++i)
        if (level[block + i] - level[block + i - 1] != step) return std::nullopt;
      starts.push_back(level[block]);
    }
    modes.push_back({static_cast<std::int64_t>(run), step});
    level = std::move(starts);
  }
  std::ranges::reverse(modes);
  return modes;
}

}  // namespace

std::vector<Mode> coalesced(std::span<const Mode> modes) {
  std::vector<Mode> result;
  for (const Mode& mode : modes) {
    if (mode.size == 1) continue;
    std::int64_t span = 0;
    // Two modes can be merged if the stride of the outer mode is the whole length of the inner
    // mode.
    if (!result.empty() && !__builtin_mul_overflow(mode.size, mode.stride, &span) &&
        result.back().stride == span)
      result.back() = {result.back().size * mode.size, mode.stride};
    else
      result.push_back(mode);
  }
  return result;
}

RankSet RankSet::range(Rank first, std::int64_t count) {
  if (count == 0) return {};
  const Mode mode{count, 1};
  return strided(first.value(), {&mode, 1});
}

RankSet RankSet::strided(std::int64_t start, std::span<const Mode> modes,
                         std::shared_ptr<const RankTable> table) {
  RankSet set;
  set.start_ = start;
  set.lowest_ = start;
  set.size_ = 1;
  for (const Mode& mode : modes) {
    if (mode.size < 1) refuse("every size must be at least 1");
    if (mode.stride == INT64_MIN) refuse("the numbers overflow 64 bits");
    set.size_ = product_or_refuse(set.size_, mode.size);
  }
  set.modes_ = coalesced(modes);
  set.table_ = std::move(table);

  std::int64_t weight = set.size_;
  for (const Mode& mode : set.modes_) {
    weight /= mode.size;
    const bool falls = mode.stride < 0;
    set.digits_.push_back({mode.size, std::abs(mode.stride), falls ? -weight : weight, 0, {}});
    if (!falls) continue;
    set.lowest_ = sum_or_refuse(set.lowest_, product_or_refuse(mode.size - 1, mode.stride));
    set.index_of_lowest_ += (mode.size - 1) * weight;
  }
  std::ranges::sort(set.digits_, std::ranges::greater{}, &Digit::step);

  std::int64_t reach = 0;  // the span of all smaller digits together
  for (auto digit = set.digits_.rbegin(); digit != set.digits_.rend(); ++digit) {
    const std::int64_t stride = digit->step;
    if (stride <= reach) refuse("the strides overlap: two elements could have the same position");
    digit->by_step = Divider{stride};
    reach = sum_or_refuse(reach, product_or_refuse(digit->size - 1, stride));
  }
  set.is_interval_ = !set.table_ && reach == set.size_ - 1;
  // Digit d is quotient d - quotient d-1 * size d, which is multiplied by weight d.
  for (std::size_t d = 0; d < set.digits_.size(); ++d) {
    set.digits_[d].factor = set.digits_[d].weight;
    if (d > 0) set.digits_[d - 1].factor -= set.digits_[d].size * set.digits_[d].weight;
  }
  if (set.lowest_ < 0) refuse("a position is negative");
  const std::int64_t highest = sum_or_refuse(set.lowest_, reach);
  if (set.table_ && highest >= set.table_->size()) refuse("a position is outside the table");
  return set;
}

RankSet RankSet::repeated(Rank rank, std::int64_t count) {
  RankSet set = range(rank, 1);
  set.size_ = count;
  set.modes_ = {{count, 0}};  // no digits: every index gives the same rank
  set.is_interval_ = count == 1;
  return set;
}

RankSet RankSet::of(std::span<const Rank> ranks) {
  if (ranks.empty()) return {};
  std::vector<std::int64_t> values;
  for (const Rank rank : ranks) values.push_back(rank.value());
  auto table = RankTable::make(std::move(values));  // also checks for repeated and negative ranks
  if (const auto modes = modes_of(ranks)) {
    try {
      return strided(ranks.front().value(), *modes);
    } catch (const UsageError&) {
      // The steps are regular but the strides overlap (0,3,2,5), so a table is needed.
    }
  }
  const Mode all{table->size(), 1};
  return strided(0, {&all, 1}, std::move(table));
}

std::int64_t RankSet::position_at(std::int64_t i) const {
  std::int64_t position = start_;
  for (auto mode = modes_.rbegin(); mode != modes_.rend(); ++mode) {
    position += (i % mode->size) * mode->stride;
    i /= mode->size;
  }
  return position;
}

Rank RankSet::at(std::int64_t i) const {
  if (i < 0 || i >= size_)
    throw UsageError{fmt::format("index {} is out of range for a set of {} ranks", i, size_),
                     "indices start at 0"};
  return (*this)[i];
}

Rank RankSet::highest() const {
  if (size_ == 0) return -1;
  if (table_ && size_ == table_->size()) return table_->highest();
  if (table_) return *std::max_element(begin(), end());
  std::int64_t highest = lowest_;
  for (const Mode& mode : modes_) highest += (mode.size - 1) * std::abs(mode.stride);
  return highest;
}

Rank RankSet::lowest() const {
  if (size_ == 0) return -1;
  return table_ ? *std::min_element(begin(), end()) : Rank{lowest_};
}

// Decodes a position greedily: the digit with the largest step is the quotient, and the remainder
// goes to the next one. This is correct because strided() requires that each step exceeds the span
// of all smaller digits, so a digit can never be replaced by smaller ones. Positions count from the
// lowest one, which makes the digits of negative strides positive; their weight is negative.
std::int64_t RankSet::find_by_digits(Rank rank) const {
  std::int64_t position = rank.value();
  if (size_ == 0 || position < 0) return -1;
  if (table_) {
    const auto found = table_->position_of(position);
    if (!found) return -1;
    position = *found;
  }
  std::int64_t rest = position - lowest_;
  if (rest < 0) return -1;
  std::int64_t index = index_of_lowest_;
  for (const Digit& digit : digits_) {
    const std::int64_t q = digit.by_step.quotient(rest);
    if (q >= digit.size) return -1;
    rest -= q * digit.step;
    index += q * digit.weight;
  }
  if (rest != 0) return -1;
  return index;
}

// Each stride exceeds the span of the smaller ones, so modes in descending order of stride list the
// ranks in ascending order.
std::vector<Mode> RankSet::ascending_modes() const {
  std::vector<Mode> modes = modes_;
  for (Mode& mode : modes) mode.stride = std::abs(mode.stride);
  std::ranges::sort(modes, std::ranges::greater{}, &Mode::stride);
  return coalesced(modes);
}

bool RankSet::has_same_ranks(const RankSet& other) const {
  if (size_ != other.size_) return false;
  const bool has_same_table = table_ == other.table_ ||
                              (table_ && other.table_ && table_->ranks() == other.table_->ranks());
  return size_ == 0 || (has_same_table && lowest_ == other.lowest_ &&
                        ascending_modes() == other.ascending_modes());
}

std::vector<Rank> RankSet::to_vector() const {
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<std::size_t>(size_));
  for_each([&](Rank rank) { ranks.push_back(rank); });
  return ranks;
}

bool operator==(const RankSet& a, const RankSet& b) {
  if (a.size_ != b.size_) return false;
  if (a.size_ == 0) return true;
  if (a.table_ == b.table_) return a.start_ == b.start_ && a.modes_ == b.modes_;
  return std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace rankmesh
