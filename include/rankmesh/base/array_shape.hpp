// SPDX-License-Identifier: BSD-3-Clause
// The axes of an array in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The order in which the elements of an array lie in memory. `any` if it has at most one axis
/// longer than 1, if it has no elements, or if the order is another one.
enum class ArrayOrder : std::uint8_t { any, row_major, column_major };

/// The length and the stride of each axis of an array, both in elements. The stride of an axis is
/// the distance in memory of elements that are neighbours along it.
class RANKMESH_API ArrayShape {
 public:
  static constexpr std::size_t most_axes = 8;  ///< An array has at most so many axes.

  /// The shape of an array without axes, which has one element.
  ArrayShape() = default;
  /// @param lengths, strides  One number per axis: ranges of integers of any type.
  /// @throws UsageError if there are not as many strides as lengths, if there are more than 8, or
  /// if a length is negative.
  template <std::ranges::forward_range Lengths, std::ranges::forward_range Strides>
  ArrayShape(const Lengths& lengths, const Strides& strides) {
    auto length = std::ranges::begin(lengths);
    auto stride = std::ranges::begin(strides);
    for (; length != std::ranges::end(lengths) && stride != std::ranges::end(strides);
         ++length, ++stride)
      add_axis(static_cast<std::int64_t>(*length), static_cast<std::int64_t>(*stride));
    if (length != std::ranges::end(lengths) || stride != std::ranges::end(strides))
      refuse_strides();
  }
  /// Does the same for lists in braces.
  ArrayShape(std::initializer_list<std::int64_t> lengths,
             std::initializer_list<std::int64_t> strides)
      : ArrayShape{std::span{lengths.begin(), lengths.size()},
                   std::span{strides.begin(), strides.size()}} {}
  /// Returns the shape of an array whose last axis has the stride 1, and which has no gaps.
  [[nodiscard]] static ArrayShape row_major(std::span<const std::int64_t> lengths);
  /// Does the same for a list in braces.
  [[nodiscard]] static ArrayShape row_major(std::initializer_list<std::int64_t> lengths) {
    return row_major(std::span{lengths.begin(), lengths.size()});
  }
  /// Adds an axis behind the others.
  /// @throws UsageError if there are 8 axes already, or if the length is negative.
  void add_axis(std::int64_t length, std::int64_t stride) {
    if (axes_ == most_axes || length < 0) refuse_axis(length);
    lengths_[axes_] = length;
    strides_[axes_++] = stride;
  }

  /// Returns the number of axes.
  [[nodiscard]] std::size_t axes() const noexcept { return axes_; }
  /// Returns the length of each axis.
  [[nodiscard]] std::span<const std::int64_t> lengths() const noexcept {
    return {lengths_.data(), axes_};
  }
  /// Returns the stride of each axis.
  [[nodiscard]] std::span<const std::int64_t> strides() const noexcept {
    return {strides_.data(), axes_};
  }
  /// Returns the number of elements.
  [[nodiscard]] std::int64_t count() const noexcept;
  /// Returns the number of elements that fit between the first and the last element in memory, both
  /// included.
  [[nodiscard]] std::int64_t reach() const noexcept;
  /// Returns whether the elements fill their memory without gaps, in any order of the axes.
  [[nodiscard]] bool has_no_gaps() const noexcept;
  /// Returns whether there are no gaps, and the last axis has the smallest stride.
  [[nodiscard]] bool is_row_major() const noexcept;
  /// Returns whether there are no gaps, and the first axis has the smallest stride.
  [[nodiscard]] bool is_column_major() const noexcept;
  /// Returns the order of the elements, which all members of an operation must have alike.
  [[nodiscard]] ArrayOrder order() const noexcept;
  /// Returns for example "[3,4] with the strides [8,1]".
  [[nodiscard]] std::string to_string() const;

  /// Compares sizes and strides.
  friend bool operator==(const ArrayShape&, const ArrayShape&) = default;

 private:
  [[noreturn]] void refuse_axis(std::int64_t length) const;
  [[noreturn]] static void refuse_strides();
  [[nodiscard]] bool follows(bool from_last) const noexcept;

  std::size_t axes_ = 0;
  std::array<std::int64_t, most_axes> lengths_{}, strides_{};
};

namespace detail {
/// Throws the UsageError for an array with gaps.
/// @param hint  What to write instead.
[[noreturn]] RANKMESH_API void refuse_gaps(const ArrayShape& shape, const char* hint);
/// Throws the UsageError for an array that is not row-major.
[[noreturn]] RANKMESH_API void refuse_order(const ArrayShape& shape, const char* hint);
}  // namespace detail

}  // namespace rankmesh
