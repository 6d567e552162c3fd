// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_memory.hpp"

#include <exception>
#include <limits>

#include "base/detail/private_api.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/stream.hpp"

namespace rankmesh::exchange::detail {

namespace {

cudaStream_t handle_of(StreamRef stream) { return static_cast<cudaStream_t>(stream.native()); }

// Whether CUDA copies rows at this distance in two dimensions. It refuses distances above
// cudaDevAttrMaxPitch, which is 2^31 - 1 on all devices.
bool is_pitch(std::int64_t step, std::int64_t bytes) {
  return bytes <= step && step <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

RANKMESH_PRIVATE_API void* allocate_for_all_streams(std::size_t bytes) {
  const device::Stream stream = device::Stream::create();
  void* memory = device::allocate_in_order(bytes, stream);
  device::wait_for(stream);
  return memory;
}

RANKMESH_PRIVATE_API void free_after_device(void* memory) noexcept {
  if (memory == nullptr) return;
  try {
    // cudaFree does not wait for the uses of a pool's memory.
    device::drain(Deadline{default_timeout()});
  } catch (const std::exception&) {
    return;
  }
  device::detail::release(memory);
}

RANKMESH_PRIVATE_API void copy_rows_in_order(std::byte* to, std::int64_t to_step,
                                             const std::byte* from, std::int64_t from_step,
                                             std::int64_t bytes, std::int64_t rows,
                                             StreamRef stream) {
  if (rows > 1 && is_pitch(to_step, bytes) && is_pitch(from_step, bytes))
    return device::check(
        cudaMemcpy2DAsync(to, static_cast<std::size_t>(to_step), from,
                          static_cast<std::size_t>(from_step), static_cast<std::size_t>(bytes),
                          static_cast<std::size_t>(rows), cudaMemcpyDeviceToDevice,
                          handle_of(stream)),
        "cudaMemcpy2DAsync");
  for (std::int64_t row = 0; row < rows; ++row)
    device::detail::copy_on_device(to + row * to_step, from + row * from_step,
                                   static_cast<std::size_t>(bytes), stream);
}

// CUDA lets a stream be destroyed before its work has ended.
struct OrderedMemory::Parts {
  device::Stream stream =
      device::Stream::create();  // waits for all uses, and then frees the memory
  device::Event use;
  std::byte* data = nullptr;

  ~Parts() {
    try {
      device::free_in_order(data, stream);
    } catch (const Error&) {
      // CUDA has failed: nothing can be freed.
    }
  }
};

RANKMESH_PRIVATE_API OrderedMemory::OrderedMemory(std::size_t bytes)
    : parts_{std::make_shared<Parts>()} {
  parts_->data = static_cast<std::byte*>(device::allocate_in_order(bytes, parts_->stream));
  device::wait_for(parts_->stream);
  data_ = parts_->data;
}

RANKMESH_PRIVATE_API void OrderedMemory::note_use(StreamRef stream) noexcept {
  try {
    parts_->use.record(stream);
    parts_->use.make_wait(parts_->stream);
  } catch (const Error&) {
    parts_->data = nullptr;  // the end of the use is unknown
  }
}

}  // namespace rankmesh::exchange::detail
