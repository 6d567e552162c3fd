// SPDX-License-Identifier: BSD-3-Clause
// Functions of glibc 2.36 for older systems, where a folder of scripts/gpu-test --pack runs: a
// carried library (libevent) asks for them. The launcher preloads this library.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void* buffer, size_t bytes) {
  unsigned char* to = buffer;
  while (bytes > 0) {
    const ssize_t got = getrandom(to, bytes, 0);
    if (got <= 0) continue;  // interrupted by a signal
    to += got;
    bytes -= (size_t)got;
  }
}

uint32_t arc4random(void) {
  uint32_t value = 0;
  arc4random_buf(&value, sizeof value);
  return value;
}

// Rejects the numbers that would make some results more frequent than others.
uint32_t arc4random_uniform(uint32_t bound) {
  if (bound < 2) return 0;
  const uint32_t rejected = -bound % bound;
  uint32_t value = arc4random();
  while (value < rejected) value = arc4random();
  return value % bound;
}
