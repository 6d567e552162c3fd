// SPDX-License-Identifier: BSD-3-Clause
// Makes a file larger.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace rankmesh::detail {

/// Sets the size of a file, also of shared memory. If the size exceeds the limit (`ulimit -f`), the
/// function fails. The system itself would send the signal SIGXFSZ, which ends the process.
/// @return false if that failed; errno then has the reason.
inline bool set_file_size(int descriptor, std::uint64_t bytes) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  return ::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0;
}

}  // namespace rankmesh::detail
