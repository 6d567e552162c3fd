// SPDX-License-Identifier: BSD-3-Clause
// Operations take vectors of Thrust.
#pragma once

#include <cstddef>

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include "rankmesh/base/memory.hpp"

namespace rankmesh {

namespace detail {
/// Describes a vector of Thrust.
template <class Vector>
struct ThrustVector {
  /// Returns the address of the first element.
  template <class V>
  static auto* data(V& vector) {
    return thrust::raw_pointer_cast(vector.data());
  }
  /// Returns the number of elements.
  static std::size_t shape(const Vector& vector) { return vector.size(); }
};
}  // namespace detail

/// Describes a vector in host memory.
template <class T, class A>
struct MemoryOf<thrust::host_vector<T, A>> : detail::ThrustVector<thrust::host_vector<T, A>> {};
/// Describes a vector in the memory of Thrust's device system, which is the host without CUDA.
template <class T, class A>
struct MemoryOf<thrust::device_vector<T, A>> : detail::ThrustVector<thrust::device_vector<T, A>> {
  static constexpr MemoryKind kind = THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
                                         ? MemoryKind::device
                                         : MemoryKind::host;  ///< See MemoryOf.
};

}  // namespace rankmesh
