// 128-bit hashes, for digests and for agreement between ranks.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// Not cryptographic: it finds accidents, not attacks.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
};

/// XXH3-128 (xxHash 0.8, seed 0) of the bytes: the same on every machine, compiler and release.
RANKMESH_API Hash128 hash_bytes(std::string_view bytes);

/// The same of bytes that come in pieces, until one is empty.
RANKMESH_API Hash128 hash_pieces(const std::function<std::string_view()>& next);

/// 32 hexadecimal digits, the high half first.
RANKMESH_API std::string to_string(const Hash128& hash);

}  // namespace rankmesh
