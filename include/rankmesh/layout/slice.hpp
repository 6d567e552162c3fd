// SPDX-License-Identifier: BSD-3-Clause
// One member's part of n elements. n need not be a multiple of the number of members.
#pragma once

#include <concepts>
#include <cstdint>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// A group, or any other type that has members and knows which member the caller is.
template <class G>
concept GroupLike = requires(const G& group) {
  { group.size() };
  { group.rank_in_group().value() };
};

/// The part of `n` elements that belongs to one member. The parts are contiguous and follow each
/// other in group order, and their sizes differ by at most 1: the first members have the larger
/// parts. If there are more members than elements, the parts of the last members are empty.
class RANKMESH_API Slice {
 public:
  /// Returns the part of member k of `members`. Local.
  /// @throws UsageError if `n` is negative, or if k is not from 0 to members - 1.
  static Slice of(std::int64_t n, std::int64_t members, std::int64_t k);
  /// Creates the caller's part: `const Slice rows{n, mesh["dp"]};`
  /// @throws UsageError if `n` is negative.
  template <GroupLike G>
  Slice(std::int64_t n, const G& group)
      : Slice{of(n, group.size(), group.rank_in_group().value())} {}
  /// Refuses other arguments, at compile time.
  template <class First, class... Others>
    requires(!std::same_as<First, Slice> &&
             !(sizeof...(Others) == 1 && std::convertible_to<First, std::int64_t> &&
               (GroupLike<Others> && ...)))
  RANKMESH_REFUSE(
      "write Slice{n, group}, or Slice::of(n, members, k) for the part of member k") explicit Slice(const First&,
                                                                                                    const Others&...) {
  }

  /// Returns the number of the first element.
  [[nodiscard]] std::int64_t begin() const { return begin_; }
  /// Returns the number of the last element, plus 1.
  [[nodiscard]] std::int64_t end() const { return end_; }
  /// Returns the number of elements.
  [[nodiscard]] std::int64_t size() const { return end_ - begin_; }
  /// Returns whether element i is in the slice.
  [[nodiscard]] bool contains(std::int64_t i) const { return begin_ <= i && i < end_; }

  /// Returns whether all fields are equal.
  friend bool operator==(const Slice&, const Slice&) = default;

 private:
  Slice(std::int64_t begin, std::int64_t end) : begin_{begin}, end_{end} {}
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace rankmesh
