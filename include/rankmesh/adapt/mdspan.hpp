// SPDX-License-Identifier: BSD-3-Clause
// Operations take std::mdspan, and classes with the same functions, such as those of the reference
// implementation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rankmesh/base/memory.hpp"

namespace rankmesh {

namespace detail {
/// An mdspan whose layout has strides and whose elements have addresses.
template <class M>
concept StridedMdspan = requires(const M& span) {
  requires M::is_always_strided();
  requires std::is_pointer_v<std::remove_cvref_t<decltype(span.data_handle())>>;
  span.extent(M::rank());
  span.stride(M::rank());
};
}  // namespace detail

/// Describes an mdspan.
template <detail::StridedMdspan M>
struct MemoryOf<M> {
  static constexpr Ownership ownership =
      Ownership::viewed;  ///< The span does not own its elements.
  static constexpr const char* copy =
      "copy the elements to an array with the layout layout_right";  ///< See MemoryOf.
  /// Returns the address of the first element.
  static auto* data(const M& span) { return span.data_handle(); }
  /// Returns the axes.
  static ArrayShape shape(const M& span) {
    ArrayShape shape;
    for (std::size_t k = 0; k < M::rank(); ++k)
      shape.add_axis(static_cast<std::int64_t>(span.extent(k)),
                     static_cast<std::int64_t>(span.stride(k)));
    return shape;
  }
};

}  // namespace rankmesh
