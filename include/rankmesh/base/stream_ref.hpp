// SPDX-License-Identifier: BSD-3-Clause
// A reference to a device stream. It can be used without the headers of CUDA.
#pragma once

#include <concepts>
#include <cstddef>

struct CUstream_st;  // cudaStream_t and CUstream point to it

namespace rankmesh {

/// A reference to a device stream (`cudaStream_t`). The reference does not own the stream. An empty
/// reference means the default stream of the device. Operations on host memory ignore the
/// reference.
class StreamRef {
 public:
  constexpr StreamRef() = default;
  /// Refers to a cudaStream_t, which must outlive the reference. Implicit. A `void*` may hold one.
  /// Other pointers are refused: they would become a stream where a program passes, for example,
  /// the MPI_Op of an operation, which is a pointer with Open MPI.
  template <class Native>
    requires std::same_as<Native, CUstream_st*> || std::same_as<Native, void*> ||
             std::same_as<Native, std::nullptr_t>
  constexpr StreamRef(Native native) : native_{native} {}
  /// Returns the `cudaStream_t`, or null for the default stream.
  [[nodiscard]] constexpr void* native() const { return native_; }

 private:
  void* native_ = nullptr;
};

}  // namespace rankmesh
