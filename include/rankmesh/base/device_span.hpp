// SPDX-License-Identifier: BSD-3-Clause
// A view of device memory.
#pragma once

#include <cstddef>

#include "rankmesh/base/element.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {

/// A view of device memory, which consists of a pointer and a number of elements. The view does not
/// own the memory.
template <MovableElement T>
class DeviceSpan {
 public:
  using element_type = T;  ///< The type of the elements.
  constexpr DeviceSpan() = default;
  /// Creates a span of `count` elements in device memory from `data`. Local.
  constexpr DeviceSpan(T* data, std::size_t count) : data_{data}, count_{count} {}
  /// Returns the address of the first element, in device memory.
  [[nodiscard]] constexpr T* data() const { return data_; }
  /// Returns the number of elements.
  [[nodiscard]] constexpr std::size_t size() const { return count_; }
  /// Returns the `count` elements that begin at element `offset`.
  /// @throws UsageError if `offset + count` is greater than size().
  [[nodiscard]] constexpr DeviceSpan subspan(std::size_t offset, std::size_t count) const {
    if (offset > count_ || count > count_ - offset)
      throw UsageError{"DeviceSpan::subspan reaches past the end",
                       "keep offset + count within size()"};
    return {data_ + offset, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A list of views is a list of buffers, and not memory whose elements are views.
template <class T>
inline constexpr bool refers_to_arrays<DeviceSpan<T>> = true;

}  // namespace rankmesh
