// A device stream, named without any device header.
#pragma once

namespace rankmesh {

/// A non-owning handle on a device stream (a `cudaStream_t`); empty means the device's default
/// stream. Host operations ignore it.
class StreamRef {
 public:
  constexpr StreamRef() = default;
  constexpr StreamRef(void* native)
      : native_{native} {}  // implicit: a cudaStream_t is such a pointer
  [[nodiscard]] constexpr void* native() const { return native_; }

 private:
  void* native_ = nullptr;
};

}  // namespace rankmesh
