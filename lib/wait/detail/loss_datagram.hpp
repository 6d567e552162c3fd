// SPDX-License-Identifier: BSD-3-Clause
// The messages of the agreement on losses, as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "loss_agreement.hpp"

namespace rankmesh::detail {

/// A message between two ranks of a mesh.
struct LossDatagram {
  std::uint64_t key = 0;  ///< Of the mesh.
  std::uint32_t from = 0, to = 0;
  LossAgreement::LossMessage message{};
};

[[nodiscard]] std::vector<std::byte> to_bytes(const LossDatagram& datagram);
/// Returns the key of the mesh to which a datagram belongs; nothing if it is none of rankmesh.
[[nodiscard]] std::optional<std::uint64_t> key_in(std::span<const std::byte> bytes);
/// Returns nothing if the bytes are no datagram of a mesh with so many ranks.
[[nodiscard]] std::optional<LossDatagram> to_datagram(std::span<const std::byte> bytes,
                                                      std::size_t ranks);

}  // namespace rankmesh::detail
