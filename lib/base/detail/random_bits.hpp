// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of the system.
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace rankmesh::detail {

/// Returns 64 random bits. A std::random_device asks the processor for its features each time it
/// is constructed. In a virtual machine, that leaves the machine, and takes longer than this call.
/// @throws std::system_error if the system has none.
inline std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits))
    throw std::system_error{errno, std::generic_category(), "getrandom"};
  return bits;
}

}  // namespace rankmesh::detail
