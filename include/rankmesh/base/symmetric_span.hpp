// SPDX-License-Identifier: BSD-3-Clause
// Memory that this rank and the other ranks of the mesh can address.
#pragma once

#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/symmetric_window.hpp"

namespace rankmesh {

/// A view of this rank's part of a symmetric allocation (see Mesh::allocate_symmetric), or of a
/// range of elements in this part. The view does not own the memory. Closing the mesh releases the
/// memory. The view converts to std::span, but a collective treats a std::span as ordinary memory.
/// Only a SymmetricSpan tells the collective that the memory is symmetric.
template <Element T>
class SymmetricSpan {
 public:
  using element_type = T;                  ///< The type of the elements, which may be const.
  using value_type = std::remove_cv_t<T>;  ///< The type of the elements without const.

  SymmetricSpan() = default;
  /// Creates a view. Only the mesh calls this constructor.
  /// @param window  the allocation that contains the memory.
  SymmetricSpan(std::shared_ptr<const SymmetricWindow> window, T* data, std::size_t count)
      : window_{std::move(window)}, data_{data}, count_{count} {}

  /// Returns the address of the first element.
  [[nodiscard]] T* data() const { return data_; }
  /// Returns the number of elements.
  [[nodiscard]] std::size_t size() const { return count_; }
  /// Returns whether there are no elements.
  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// Returns the address of the first element.
  [[nodiscard]] T* begin() const { return data_; }
  /// Returns the address after the last element.
  [[nodiscard]] T* end() const { return data_ + count_; }
  /// Returns element i. The index is not checked.
  [[nodiscard]] T& operator[](std::size_t i) const { return data_[i]; }
  /// Returns a view of the `count` elements that begin at element `offset`. These elements are
  /// symmetric memory too. The members of a group may pass different ranges of elements to the same
  /// call.
  /// @throws UsageError if `offset + count` is greater than size().
  [[nodiscard]] SymmetricSpan subspan(std::size_t offset, std::size_t count) const {
    if (offset > count_ || count > count_ - offset)
      throw UsageError{"SymmetricSpan::subspan reaches past the end",
                       "keep offset + count within size()"};
    return {window_, data_ + offset, count};
  }
  // Implicit, so that functions that take a std::span accept this view.
  /// Views the memory as an ordinary span. Operations on this span need copies.
  operator std::span<T>() const { return {data_, count_}; }
  /// Returns the window of the memory on all ranks of the node, or null.
  [[nodiscard]] const SymmetricWindow* window() const { return window_.get(); }

 private:
  std::shared_ptr<const SymmetricWindow> window_;
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace rankmesh

template <class T>
inline constexpr bool std::ranges::enable_borrowed_range<rankmesh::SymmetricSpan<T>> = true;
template <class T>
inline constexpr bool std::ranges::enable_view<rankmesh::SymmetricSpan<T>> = true;
