// SPDX-License-Identifier: BSD-3-Clause
// A library for LD_PRELOAD: no file system can hold a file without a name, as on network file
// systems.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

// meson compiles for 64-bit offsets, so this is open64, as in meshinfo.
int open(const char* path, int flags, ...) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
