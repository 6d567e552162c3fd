// SPDX-License-Identifier: BSD-3-Clause
// A reference to a device stream. It can be used without the headers of CUDA.
#pragma once

namespace rankmesh {

/// A reference to a device stream (`cudaStream_t`). The reference does not own the stream. An empty
/// reference means the default stream of the device. Operations on host memory ignore the
/// reference.
class StreamRef {
 public:
  constexpr StreamRef() = default;
  /// Refers to a cudaStream_t, which must outlive the reference. Implicit.
  constexpr StreamRef(void* native)
      : native_{native} {}  // implicit, because a cudaStream_t is a pointer
  /// Returns the `cudaStream_t`, or null for the default stream.
  [[nodiscard]] constexpr void* native() const { return native_; }

 private:
  void* native_ = nullptr;
};

}  // namespace rankmesh
