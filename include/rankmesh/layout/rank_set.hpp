// An ordered set of ranks that is arithmetic, never a list.
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

/// One level of a nested stride: `size` elements, `stride` apart (CuTe's shape:stride).
struct Mode {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  friend bool operator==(const Mode&, const Mode&) = default;
};

/// An ordered set of ranks: nested strided positions, seen through a table where the layout has
/// one.
///
/// Element i is found by writing i in the mixed radix of the modes, the last mode varying fastest,
/// and adding up digit x stride. Strides may be negative. A digit must outweigh all smaller ones
/// together, so that an element has one index only. size, at, index_of and contains are O(number of
/// modes) (index_of O(log n) more with a table) and nothing is stored per rank.
class RANKMESH_API RankSet {
 public:
  /// The empty set.
  RankSet() = default;
  /// The ranks first, first+1, ... .
  static RankSet range(Rank first, std::int64_t count);
  /// @param start  position of element 0.
  /// @throws UsageError where a size is below 1, a position is negative or outside the table, or
  /// two index
  ///         tuples meet in one position.
  static RankSet strided(std::int64_t start, std::span<const Mode> modes,
                         std::shared_ptr<const RankTable> table = nullptr);
  /// The compact form that to_string() prints: `0-3,8,16-120:8`, in this order; blanks are free.
  /// @param most  ranks that may be listed by more than one item; one item alone is arithmetic, at
  /// any size.
  /// @throws SpecError with the position in the text.
  static RankSet parse(std::string_view text, std::int64_t most = std::int64_t{1} << 22);
  /// One rank several times: no set, but what a ring of one member makes of "me and my neighbour".
  /// Can be printed; index_of gives 0.
  static RankSet repeated(Rank rank, std::int64_t count);
  /// The given ranks in their order: as strides where they follow some, else through a table of
  /// their own.
  /// @throws SpecError where a rank is negative or stands twice.
  static RankSet of(std::span<const Rank> ranks);

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Element i. @throws UsageError outside 0 <= i < size().
  [[nodiscard]] Rank at(std::int64_t i) const;
  /// Element i, unchecked.
  [[nodiscard]] Rank operator[](std::int64_t i) const {
    const std::int64_t position = position_at(i);
    return table_ ? table_->rank_at(position) : position;
  }
  [[nodiscard]] Rank front() const { return at(0); }
  [[nodiscard]] Rank back() const { return at(size_ - 1); }
  /// The highest rank in it, wherever it stands; -1 where the set is empty. O(1), O(size) with a
  /// table.
  [[nodiscard]] Rank highest() const;
  /// The lowest; -1 where the set is empty.
  [[nodiscard]] Rank lowest() const;
  [[nodiscard]] std::optional<RankInGroup> index_of(Rank rank) const {
    const std::int64_t index = find(rank);
    if (index < 0) return std::nullopt;
    return RankInGroup{index};
  }
  /// The same as a plain number, -1 where the rank is not in it: it comes back in a register.
  [[nodiscard]] std::int64_t find(Rank rank) const;
  [[nodiscard]] bool contains(Rank rank) const { return find(rank) >= 0; }

  /// Position of element 0, and the modes in their shortest form (no mode of size 1, none that
  /// continues the next): two sets over the same table are equal exactly where these are.
  [[nodiscard]] std::int64_t start() const { return start_; }
  [[nodiscard]] const std::vector<Mode>& modes() const { return modes_; }
  [[nodiscard]] const std::shared_ptr<const RankTable>& table() const { return table_; }

  /// Modes of the same ranks in ascending order of position, in their shortest form.
  [[nodiscard]] std::vector<Mode> ascending_modes() const;
  /// Whether both are the same ranks in whatever order, known by arithmetic alone. False where that
  /// cannot be told at once: over different tables.
  [[nodiscard]] bool has_same_ranks(const RankSet& other) const;

  /// All ranks in order. O(size).
  [[nodiscard]] std::vector<Rank> to_vector() const;
  /// Calls `take(Rank)` for every rank in order. Counts like an odometer, where an iterator
  /// divides.
  template <class Take>
  void for_each(Take&& take) const;

  /// One item of the compact form: `first` alone (step 0), or `first-last` (step 1), or
  /// `first-last:step`.
  struct Item {
    std::int64_t first, last, step;
  };
  /// The items in order, in constant memory, until `take` returns false.
  void items(const std::function<bool(const Item&)>& take) const;
  /// The compact form `0-3,8,16-120:8` piece by piece, in constant memory, until `take` returns
  /// false.
  void write(const std::function<bool(std::string_view)>& take) const;
  /// The same as a string; at most `limit` characters, then ",...".
  [[nodiscard]] std::string to_string(std::size_t limit = SIZE_MAX) const;

  /// The same ranks in the same order, however they are represented.
  friend RANKMESH_API bool operator==(const RankSet& a, const RankSet& b);

  class Iterator {
   public:
    using difference_type = std::int64_t;
    using value_type = Rank;
    using reference = Rank;
    using pointer = void;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    Iterator(const RankSet* set, std::int64_t i) : set_{set}, i_{i} {}
    Rank operator*() const { return (*set_)[i_]; }
    Iterator& operator++() { return ++i_, *this; }
    Iterator operator++(int) { return {set_, i_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const RankSet* set_ = nullptr;
    std::int64_t i_ = 0;
  };
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size_}; }

 private:
  // A mode as index_of needs it, counted from the lowest position: `weight` is what one step
  // upwards adds to the index, negative where the stride is.
  struct Digit {
    std::int64_t size, step, weight;
    Divider by_step;
  };

  [[nodiscard]] std::int64_t position_at(std::int64_t i) const;

  std::int64_t start_ = 0;
  std::int64_t size_ = 0;
  std::int64_t lowest_ = 0;  // the smallest position
  std::int64_t index_of_lowest_ = 0;
  std::vector<Mode> modes_;
  std::vector<Digit> digits_;  // by falling step
  std::shared_ptr<const RankTable> table_;
};

template <class Take>
void RankSet::for_each(Take&& take) const {
  std::array<std::int64_t, 64>
      digits;  // a mode has 2 elements or more, and their number fits 63 bits
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

/// The shortest list of modes with the same elements in the same order.
RANKMESH_API std::vector<Mode> coalesced(std::span<const Mode> modes);

}  // namespace rankmesh
