// SPDX-License-Identifier: BSD-3-Clause
// Operations take views of Kokkos.
#pragma once

#include <cstddef>
#include <cstdint>

#include <Kokkos_Core.hpp>

#include "rankmesh/base/memory.hpp"

/// Describes a Kokkos::View.
template <class Data, class... Properties>
struct rankmesh::MemoryOf<Kokkos::View<Data, Properties...>> {
  using View = Kokkos::View<Data, Properties...>;            ///< The type that is described.
  static constexpr Ownership ownership = Ownership::shared;  ///< Views count their references.
  /// Host memory if the host can access the memory space of the view.
  static constexpr MemoryKind kind =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename View::memory_space>::accessible
          ? MemoryKind::host
          : MemoryKind::device;
  static constexpr const char* copy =
      "copy the subview with Kokkos::deep_copy() to a view of its own";  ///< See MemoryOf.
  /// Returns the address of the first element.
  static typename View::pointer_type data(const View& view) { return view.data(); }
  /// Returns the axes.
  static ArrayShape shape(const View& view) {
    ArrayShape shape;
    for (std::size_t k = 0; k < static_cast<std::size_t>(View::rank); ++k)
      shape.add_axis(static_cast<std::int64_t>(view.extent(k)),
                     static_cast<std::int64_t>(view.stride(k)));
    return shape;
  }
};
