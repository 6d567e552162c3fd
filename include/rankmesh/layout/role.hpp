// SPDX-License-Identifier: BSD-3-Clause
// Derives the purpose of a family from its name.
#pragma once

#include <cstdint>
#include <string_view>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// The kind of parallelism of a family.
enum class FamilyRole : std::uint8_t {
  tensor,    ///< tp, sp, etp, tensor, ...: collectives in every layer
  expert,    ///< ep, expert, ...: an all-to-all in every layer of experts
  context,   ///< cp: keys and values in every layer
  data,      ///< dp, edp, dp_replicate, ...: gradients once per step; the members are replicas
  sharded,   ///< fsdp, dp_shard: like `data`, but each member holds a part of the parameters
  pipeline,  ///< pp, pipe: activations between neighbours
  other,     ///< any other name
};

/// Returns the role of the family with this name. A prefix such as `encoder.` is ignored. The names
/// of products, such as `dp_cp`, have the role `other`, unless all parts are tensor or expert
/// parallel, as in `tp_ep`.
[[nodiscard]] RANKMESH_API FamilyRole role_of(std::string_view name);

/// Returns the name of the role, for example `tensor`.
[[nodiscard]] RANKMESH_API std::string_view to_string(FamilyRole role);

}  // namespace rankmesh
