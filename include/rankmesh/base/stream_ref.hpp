// SPDX-License-Identifier: BSD-3-Clause
// A reference to a device stream that needs no device header.
#pragma once

namespace rankmesh {

/// A reference to a device stream (`cudaStream_t`). The reference does not own the stream. An empty
/// reference means the default stream of the device. Operations on host memory ignore the
/// reference.
class StreamRef {
 public:
  constexpr StreamRef() = default;
  constexpr StreamRef(void* native)
      : native_{native} {}  // implicit: a cudaStream_t is such a pointer
  /// Returns the `cudaStream_t`, or null for the default stream.
  [[nodiscard]] constexpr void* native() const { return native_; }

 private:
  void* native_ = nullptr;
};

}  // namespace rankmesh
