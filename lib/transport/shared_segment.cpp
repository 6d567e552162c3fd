// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/shared_segment.hpp"

#include <sys/mman.h>

#include "detail/segment_file.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
SharedSegment::SharedSegment(detail::SegmentFile& file)
    : data_{file.release_mapping()}, size_{file.size()} {}

void SharedSegment::unmap() noexcept {
  if (data_ != nullptr) ::munmap(data_, detail::SegmentFile::mapped_bytes(size_));
  data_ = nullptr;
  size_ = 0;
}

}  // namespace rankmesh
