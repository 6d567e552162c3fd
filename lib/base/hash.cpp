// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/hash.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL  // no run-time dependency; the algorithm is fixed since xxHash 0.8.0
#include <xxhash.h>

namespace rankmesh {

Hash128 hash_bytes(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

Hash128 hash_pieces(const std::function<std::string_view()>& next) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (std::string_view piece = next(); !piece.empty(); piece = next())
    XXH3_128bits_update(&state, piece.data(), piece.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.high64, hash.low64};
}

std::string to_string(const Hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

}  // namespace rankmesh
