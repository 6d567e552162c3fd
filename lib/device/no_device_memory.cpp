// SPDX-License-Identifier: BSD-3-Clause
// Device memory for builds without the headers of CUDA.
#include "base/detail/private_api.hpp"
#include "device/stream_memory.hpp"
#include "rankmesh/device/device_buffer.hpp"

namespace rankmesh::device {
namespace {

[[noreturn]] void fail() {
  throw NoDeviceError{
      "device memory is not available: rankmesh was built without the headers of CUDA and NCCL",
      "use host memory, or build rankmesh on a machine with these headers"};
}

}  // namespace

namespace detail {

void* allocate(std::size_t bytes) {
  if (bytes > 0) fail();
  return nullptr;
}
void release(void*) noexcept {}
void copy(void*, const void*, std::size_t bytes, Direction, StreamRef) {
  if (bytes > 0) fail();
}
void copy_on_device(void*, const void*, std::size_t bytes, StreamRef) {
  if (bytes > 0) fail();
}
void zero_on_device(void*, std::size_t bytes, StreamRef) {
  if (bytes > 0) fail();
}

}  // namespace detail

RANKMESH_PRIVATE_API void* allocate_in_order(std::size_t, StreamRef) { fail(); }
RANKMESH_PRIVATE_API void free_in_order(void*, StreamRef) {}
RANKMESH_PRIVATE_API bool is_in_capture(StreamRef) { return false; }
RANKMESH_PRIVATE_API void wait_for(StreamRef) { fail(); }
void trim_pools() noexcept {}

}  // namespace rankmesh::device
