// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/device/device_buffer.hpp"

#include <string>

#include <fmt/format.h>

#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/stream.hpp"

namespace rankmesh::device::detail {

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes == 0) return nullptr;
  const cudaError_t code = cudaMalloc(&memory, bytes);
  if (code != cudaSuccess && code != cudaErrorMemoryAllocation)
    if (const std::string reason = why_no_device(cuda_versions()); !reason.empty())
      throw NoDeviceError{fmt::format("device memory is not available: {}", reason),
                          "use host memory, or a machine with CUDA devices"};
  check(code, "cudaMalloc");
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) (void)cudaFree(memory);
}

void copy(void* to, const void* from, std::size_t bytes, Direction direction, StreamRef stream) {
  if (bytes == 0) return;
  auto* native = static_cast<cudaStream_t>(stream.native());
  const auto kind =
      direction == Direction::to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  // A copy to or from pageable memory may block until the stream has run, without a deadline.
  // Therefore wait for the stream first, with a deadline.
  const Stream on = Stream::adopt(native);
  const Deadline deadline{default_timeout()};
  on.wait(deadline);
  check(cudaMemcpyAsync(to, from, bytes, kind, native), "cudaMemcpyAsync");
  on.wait(deadline);
}

void copy_on_device(void* to, const void* from, std::size_t bytes, StreamRef stream) {
  if (bytes > 0)
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                          static_cast<cudaStream_t>(stream.native())),
          "cudaMemcpyAsync");
}

void zero_on_device(void* memory, std::size_t bytes, StreamRef stream) {
  if (bytes > 0)
    check(cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream.native())),
          "cudaMemsetAsync");
}

}  // namespace rankmesh::device::detail
