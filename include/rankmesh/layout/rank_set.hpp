// SPDX-License-Identifier: BSD-3-Clause
// An ordered set of ranks that is stored as strides instead of a list.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/divider.hpp"
#include "rankmesh/layout/rank_table.hpp"

namespace rankmesh {

/// One level of nested strides: `size` elements that are `stride` apart (shape:stride in CuTe).
struct Mode {
  std::int64_t size = 1;    ///< The number of positions.
  std::int64_t stride = 1;  ///< The distance between two positions.
  /// Returns whether all fields are equal.
  friend bool operator==(const Mode&, const Mode&) = default;
};

/// An ordered set of ranks, which is described by a start position and nested modes. If the set has
/// no table, a position is a rank. Otherwise, a position is an index into the table of ranks.
///
/// To find element i, the index i is written as a mixed-radix number with one digit per mode, where
/// the digit of the last mode varies fastest. The position of element i is `start` plus the sum of
/// the products digit * stride.
///
/// Strides may be negative. The absolute value of each stride must be greater than the span of all
/// modes that have smaller strides. Different indices therefore have different positions.
///
/// The functions size, at, index_of and contains take O(number of modes) time. With a table of n
/// ranks, index_of and contains take O(log n) additional time. The set is immutable, so several
/// threads can use it.
class RANKMESH_API RankSet {
 public:
  /// Creates the empty set.
  RankSet() = default;
  /// Returns `count` consecutive ranks that begin with `first`.
  static RankSet range(Rank first, std::int64_t count);
  /// Returns the set that the modes describe.
  /// @param start  the position of element 0.
  /// @param modes  the modes, outermost first.
  /// @param table  the rank at each position. Without a table, position p is rank p.
  /// @throws UsageError if a size is less than 1, if a position is negative or outside the table,
  /// or if two elements could have the same position.
  static RankSet strided(std::int64_t start, std::span<const Mode> modes,
                         std::shared_ptr<const RankTable> table = nullptr);
  /// Reads the compact form that to_string() writes, for example `0-3,8,16-120:8`. The set has the
  /// order of the text, and blanks are ignored.
  /// @param most  the maximum number of ranks if the text has several items. There is no limit for
  /// a single item, because its ranks are not stored.
  /// @throws SpecError if the text is invalid. The error contains the position in the text.
  static RankSet parse(std::string_view text, std::int64_t most = std::int64_t{1} << 22);
  /// Returns a list that contains the same rank `count` times. For example, in a ring of one rank,
  /// the pair of neighbours contains this rank twice. The list can be printed, and index_of()
  /// returns 0 for the rank.
  static RankSet repeated(Rank rank, std::int64_t count);
  /// Returns the given ranks in the given order. If the ranks have regular strides, the set stores
  /// these strides. Otherwise, the set has a table of its own.
  /// @throws SpecError if a rank is negative or repeated.
  static RankSet of(std::span<const Rank> ranks);

  /// Returns the number of ranks.
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Returns whether the set has no ranks.
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Returns element i.
  /// @throws UsageError unless 0 <= i < size().
  [[nodiscard]] Rank at(std::int64_t i) const;
  /// Returns element i without a check.
  [[nodiscard]] Rank operator[](std::int64_t i) const {
    const std::int64_t position = position_at(i);
    return table_ ? table_->rank_at(position) : position;
  }
  /// Returns the first rank. The set must not be empty.
  [[nodiscard]] Rank front() const { return at(0); }
  /// Returns the last rank. The set must not be empty.
  [[nodiscard]] Rank back() const { return at(size_ - 1); }
  /// Returns the highest rank, or -1 if the set is empty. Takes O(1) time, or O(size) time if the
  /// set has a table.
  [[nodiscard]] Rank highest() const;
  /// Returns the lowest rank, or -1 if the set is empty. Takes O(1) time, or O(size) time if the
  /// set has a table.
  [[nodiscard]] Rank lowest() const;
  /// Returns the index of a rank, or nothing if the set does not contain the rank.
  [[nodiscard]] std::optional<RankInGroup> index_of(Rank rank) const {
    const std::int64_t index = find(rank);
    if (index < 0) return std::nullopt;
    return RankInGroup{index};
  }
  /// Returns the index of a rank, or -1 if the set does not contain the rank. This function is
  /// faster than index_of(), because its result fits in a register.
  [[nodiscard]] std::int64_t find(Rank rank) const {
    if (!is_interval_) return find_by_digits(rank);
    const std::int64_t rest = rank.value() - lowest_;
    if (rest < 0 || rest >= size_) return -1;
    // These divisions do not depend on each other, so the processor overlaps them. The products
    // may exceed 64 bits, but their sum modulo 2^64 is the index.
    auto index = static_cast<std::uint64_t>(index_of_lowest_);
    for (const Digit& digit : digits_)
      index += static_cast<std::uint64_t>(digit.by_step.quotient(rest)) *
               static_cast<std::uint64_t>(digit.factor);
    return static_cast<std::int64_t>(index);
  }
  /// Returns whether the set contains a rank.
  [[nodiscard]] bool contains(Rank rank) const { return find(rank) >= 0; }

  /// Returns the position of element 0.
  [[nodiscard]] std::int64_t start() const { return start_; }
  /// Returns the modes in their shortest form: no mode has size 1, and no two neighbouring modes
  /// can be merged into one. Two sets that have the same table are equal if and only if their
  /// starts and modes are equal.
  [[nodiscard]] const std::vector<Mode>& modes() const { return modes_; }
  /// Returns the table of ranks, or null.
  [[nodiscard]] const std::shared_ptr<const RankTable>& table() const { return table_; }

  /// Returns the modes that describe the same ranks in ascending order of their positions. The
  /// modes are in their shortest form.
  [[nodiscard]] std::vector<Mode> ascending_modes() const;
  /// Returns true if the descriptions of both sets show that they have the same ranks. The order
  /// does not matter. If the result is false, either the ranks differ, or the sets cannot be
  /// compared because their tables differ.
  [[nodiscard]] bool has_same_ranks(const RankSet& other) const;

  /// Returns all ranks in order. Takes O(size) time.
  [[nodiscard]] std::vector<Rank> to_vector() const;
  /// Calls `take(Rank)` for every rank in order. This function is faster than the iterator, because
  /// it increments digits instead of dividing.
  template <class Take>
  void for_each(Take&& take) const;

  /// One item of the compact form: `first` (step 0), `first-last` (step 1), or `first-last:step`.
  struct Item {
    std::int64_t first;  ///< The first rank.
    std::int64_t last;   ///< The last rank.
    std::int64_t step;   ///< The distance between two ranks; 0 for a single rank.
  };
  /// Calls `take` for each item of the compact form in order, until `take` returns false. This
  /// function needs constant memory.
  void items(const std::function<bool(const Item&)>& take) const;
  /// Passes the compact form, for example `0-3,8,16-120:8`, to `take` piece by piece, until `take`
  /// returns false. This function needs constant memory.
  void write(const std::function<bool(std::string_view)>& take) const;
  /// Returns the compact form.
  /// @param limit  the maximum number of characters. A longer text is cut and ends in ",...".
  [[nodiscard]] std::string to_string(std::size_t limit = SIZE_MAX) const;

  /// Returns whether both sets have the same ranks in the same order. Their representations may
  /// differ.
  friend RANKMESH_API bool operator==(const RankSet& a, const RankSet& b);

  /// Visits the ranks in order. Dereferencing takes O(number of modes) time.
  class Iterator {
   public:
    using difference_type = std::int64_t;  ///< The type of a distance.
    using value_type = Rank;               ///< The type of the ranks.
    using reference = Rank;                ///< Ranks are returned by value.
    using pointer = void;                  ///< Ranks have no addresses.
    /// Ranks are computed while they are visited.
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    /// Creates an iterator to rank i of a set, which must outlive it.
    Iterator(const RankSet* set, std::int64_t i) : set_{set}, i_{i} {}
    /// Returns the rank.
    Rank operator*() const { return (*set_)[i_]; }
    /// Goes to the next rank.
    Iterator& operator++() { return ++i_, *this; }
    /// Goes to the next rank, and returns an iterator to this one.
    Iterator operator++(int) { return {set_, i_++}; }
    /// Returns whether both iterators point to the same position of the same set.
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const RankSet* set_ = nullptr;
    std::int64_t i_ = 0;
  };
  /// Returns an iterator to the first rank.
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  /// Returns the end of the ranks.
  [[nodiscard]] Iterator end() const { return {this, size_}; }

 private:
  // A mode in the form that find() needs. Positions are counted from the lowest position, so `step`
  // is positive. `weight` is the change of the index if the position increases by one step. The
  // weight is negative if the stride is negative. In an interval, the index is the sum of the
  // products (position / step) * factor.
  struct Digit {
    std::int64_t size, step, weight, factor;
    Divider by_step;
  };

  [[nodiscard]] std::int64_t position_at(std::int64_t i) const;
  [[nodiscard]] std::int64_t find_by_digits(Rank rank) const;

  std::int64_t start_ = 0;
  std::int64_t size_ = 0;
  std::int64_t lowest_ = 0;  // the smallest position
  std::int64_t index_of_lowest_ = 0;
  std::vector<Mode> modes_;
  std::vector<Digit> digits_;  // in descending order of step
  bool is_interval_ = false;   // there is no table, and no gap between the lowest and highest rank
  std::shared_ptr<const RankTable> table_;
};

template <class Take>
void RankSet::for_each(Take&& take) const {
  // 64 digits suffice: each mode has 2 elements or more, and the size fits in 63 bits.
  std::array<std::int64_t, 64> digits;
  for (std::size_t m = 0; m < modes_.size(); ++m) digits[m] = 0;
  std::int64_t position = start_;
  for (std::int64_t left = size_; left > 0; --left) {
    take(Rank{table_ ? table_->rank_at(position) : position});
    for (std::size_t m = modes_.size(); m-- > 0;) {
      if (++digits[m] < modes_[m].size) {
        position += modes_[m].stride;
        break;
      }
      position -= (modes_[m].size - 1) * modes_[m].stride;
      digits[m] = 0;
    }
  }
}

/// Returns the shortest list of modes that describes the same elements in the same order.
RANKMESH_API std::vector<Mode> coalesced(std::span<const Mode> modes);

}  // namespace rankmesh
