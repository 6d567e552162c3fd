// SPDX-License-Identifier: BSD-3-Clause
// 128-bit hashes, which are used for digests and to compare values between ranks.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// A 128-bit hash. The hash is not cryptographic: it detects accidental changes, but not attacks.
struct Hash128 {
  std::uint64_t high = 0;  ///< The upper 64 bits.
  std::uint64_t low = 0;   ///< The lower 64 bits.
  /// Compares two hashes as 128-bit numbers.
  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
};

/// Returns the XXH3-128 hash of the bytes (xxHash 0.8, seed 0). The hash is the same on every
/// machine, with every compiler and in every release.
RANKMESH_API Hash128 hash_bytes(std::string_view bytes);

/// Returns the hash of bytes that the caller supplies in pieces.
/// @param next  a function that returns the next piece. An empty piece marks the end.
RANKMESH_API Hash128 hash_pieces(const std::function<std::string_view()>& next);

/// Returns the hash as 32 hexadecimal digits, beginning with the high half.
RANKMESH_API std::string to_string(const Hash128& hash);

}  // namespace rankmesh
