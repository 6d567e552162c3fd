// SPDX-License-Identifier: BSD-3-Clause
// DeviceBuffer for builds without the headers of CUDA.
#include "rankmesh/device/device_buffer.hpp"

namespace rankmesh::device::detail {
namespace {

[[noreturn]] void fail() {
  throw NoDeviceError{
      "device memory is not available: rankmesh was built without the headers of CUDA and NCCL",
      "use host memory, or build rankmesh on a machine with these headers"};
}

}  // namespace

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

}  // namespace rankmesh::device::detail
