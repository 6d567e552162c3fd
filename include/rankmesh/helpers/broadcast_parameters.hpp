// SPDX-License-Identifier: BSD-3-Clause
// Gives all replicas the same parameters.
#pragma once

#include <cstddef>
#include <ranges>
#include <type_traits>

#include "rankmesh/helpers/buffers.hpp"
#include "rankmesh/helpers/family_names.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

namespace detail {
// True if the program can still read the buffers after a call that changes them. This also holds
// for a temporary list whose elements are views of the program's memory.
template <class P>
inline constexpr bool outlives_call = is_borrowed<P>;
template <BufferList P>
inline constexpr bool outlives_call<P> =
    std::is_lvalue_reference_v<P> || std::ranges::view<std::remove_cvref_t<P>> ||
    is_borrowed<std::ranges::range_value_t<P>>;
}  // namespace detail

/// Copies parameters to all their replicas. The values come from the rank that is the first member
/// of its group in each of the families:
///
///     broadcast_parameters(mesh, weights, {"dp", "cp"});
///
/// The function handles one family after another, with a broadcast from the first member of each
/// group. This reaches all replicas if the families are different dimensions, or products of them
/// without a common dimension. A rank without a group in a family skips it. Collective over this
/// rank's groups in the families. On host memory, blocks; on device memory, returns once the
/// broadcasts are queued on the stream.
/// @param parameters  One buffer, or a list of buffers such as `std::vector<std::vector<float>>`.
///                    All replicas must pass the same sizes and types.
/// @throws UnknownName if a family does not exist; also the exceptions of every operation, see
/// GroupCoordinator.
template <Buffers Parameters>
void broadcast_parameters(Mesh& mesh, Parameters&& parameters, const FamilyNames& families,
                          StreamRef stream = {}) {
  static_assert(detail::outlives_call<Parameters>,
                "nobody can read the parameters of a temporary container: pass a variable");
  for (GroupCoordinator* group : families.groups_of(mesh))
    for_each_buffer(parameters,
                    [&](auto& values, std::size_t) { group->broadcast(values, 0, stream); });
}

}  // namespace rankmesh
