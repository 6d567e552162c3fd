// SPDX-License-Identifier: BSD-3-Clause
// Seeds of random numbers that are the same on some ranks and different on others.
#pragma once

#include <cstdint>

#include "rankmesh/export.hpp"
#include "rankmesh/helpers/family_names.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Returns a seed that depends only on this rank's coordinates along `different_over`. Ranks that
/// differ in none of these coordinates get the same seed:
///
///     std::mt19937_64 dropout{seed(mesh, 1234, {"dp"})};  // differs only over dp
///
/// The seed is a hash (XXH3) of the text `rankmesh.seed/1 NUMBER dp=1 ...`, with the dimensions in
/// alphabetical order. The seed therefore depends neither on the machine nor on the sizes of the
/// dimensions, and is the same in every release. Two different lists of coordinates have the same
/// seed with a probability of 2^-64. Local.
/// @param number  A number that the program chooses, for example a different number for each
///                purpose. It must be the same on all ranks.
/// @param different_over  Names of dimensions. Without names, all ranks get the same seed.
/// @throws UnknownName if the mesh has no such dimension; NotMember if this rank is outside the
/// mesh.
[[nodiscard]] RANKMESH_API std::uint64_t seed(const Mesh& mesh, std::uint64_t number,
                                              const FamilyNames& different_over = {});

}  // namespace rankmesh
