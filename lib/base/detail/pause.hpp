// SPDX-License-Identifier: BSD-3-Clause
// A pause of a thread that keeps its core.
#pragma once

namespace rankmesh::detail {

/// Tells the core that this thread spins.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace rankmesh::detail
