// SPDX-License-Identifier: BSD-3-Clause
// Device memory for builds without the headers of CUDA: allocating it says why there is none.
#include "detail/device_memory.hpp"

#include "base/detail/private_api.hpp"

namespace rankmesh::exchange::detail {

RANKMESH_PRIVATE_API void* allocate_for_all_streams(std::size_t bytes) {
  return device::allocate_in_order(bytes, {});
}
RANKMESH_PRIVATE_API void free_after_device(void*) noexcept {}
RANKMESH_PRIVATE_API void copy_rows_in_order(std::byte*, std::int64_t, const std::byte*,
                                             std::int64_t, std::int64_t, std::int64_t,
                                             StreamRef stream) {
  device::wait_for(stream);
}

RANKMESH_PRIVATE_API OrderedMemory::OrderedMemory(std::size_t bytes)
    : data_{static_cast<std::byte*>(device::allocate_in_order(bytes, {}))} {}
RANKMESH_PRIVATE_API void OrderedMemory::note_use(StreamRef) noexcept {}

}  // namespace rankmesh::exchange::detail
