// SPDX-License-Identifier: BSD-3-Clause
// The parts of Kokkos that its adapter uses, for systems without it. Views are row-major or
// column-major, may be subviews with gaps, and count their references.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace Kokkos {

struct HostSpace {};
struct DeviceSpace {};
struct LayoutLeft {};
struct LayoutRight {};
struct LayoutStride {};

template <class From, class To>
struct SpaceAccessibility {
  static constexpr bool accessible = true;
};
template <>
struct SpaceAccessibility<HostSpace, DeviceSpace> {
  static constexpr bool accessible = false;
};

/// A view of two axes: View<float**, LayoutRight, HostSpace>.
template <class Data, class... Properties>
class View;
template <class T, class Layout, class Space>
class View<T**, Layout, Space> {
 public:
  using memory_space = Space;
  using pointer_type = T*;
  static constexpr std::size_t rank = 2;

  View(std::size_t rows, std::size_t columns)
      : memory_{new T[rows * columns](), std::default_delete<T[]>{}},
        data_{memory_.get()},
        extents_{rows, columns},
        strides_{std::is_same_v<Layout, LayoutLeft> ? 1 : columns,
                 std::is_same_v<Layout, LayoutLeft> ? rows : 1} {}
  /// A subview of another view.
  template <class Other>
  View(const Other& of, std::size_t row, std::size_t column, std::size_t rows, std::size_t columns)
      : memory_{of.memory()},
        data_{&of(row, column)},
        extents_{rows, columns},
        strides_{of.stride(0), of.stride(1)} {}

  const std::shared_ptr<T>& memory() const { return memory_; }
  T* data() const { return data_; }
  std::size_t extent(std::size_t k) const { return extents_[k]; }
  std::size_t stride(std::size_t k) const { return strides_[k]; }
  T& operator()(std::size_t i, std::size_t j) const {
    return data_[i * strides_[0] + j * strides_[1]];
  }

 private:
  std::shared_ptr<T> memory_;
  T* data_;
  std::array<std::size_t, 2> extents_, strides_;
};

}  // namespace Kokkos
