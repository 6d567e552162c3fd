// SPDX-License-Identifier: BSD-3-Clause
#include "device/ordered_memory.hpp"

#include "base/detail/private_api.hpp"

#include "device/stream_memory.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/stream.hpp"

namespace rankmesh::device {

// CUDA lets a stream be destroyed before its work has ended.
struct OrderedMemory::Parts {
  Stream stream = Stream::create();  // waits for all uses, and then frees the memory
  Event use;
  std::byte* data = nullptr;

  ~Parts() {
    try {
      free_in_order(data, stream);
    } catch (const Error&) {
      // CUDA has failed: nothing can be freed.
    }
  }
};

RANKMESH_PRIVATE_API OrderedMemory::OrderedMemory(std::size_t bytes)
    : parts_{std::make_shared<Parts>()} {
  parts_->data = static_cast<std::byte*>(allocate_in_order(bytes, parts_->stream));
  wait_for(parts_->stream);
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

}  // namespace rankmesh::device
