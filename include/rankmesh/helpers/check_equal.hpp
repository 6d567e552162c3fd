// SPDX-License-Identifier: BSD-3-Clause
// Finds replicas that have drifted apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/helpers/buffers.hpp"
#include "rankmesh/helpers/family_names.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

namespace detail {
/// One buffer of a replica.
struct ReplicaBuffer {
  ConstBuffer memory;
  std::int64_t units = 1;  ///< the number of elements of `memory` in one element of the program
};
RANKMESH_API void require_host(const ConstBuffer& memory);
RANKMESH_API void check_replicas(Mesh& mesh, const std::vector<ReplicaBuffer>& buffers,
                                 const FamilyNames& families, std::string_view name);
}  // namespace detail

/// Checks that all members of this rank's groups in the families hold the same values:
///
///     check_equal(mesh, weights, {"dp"});
///
/// Values are compared bit by bit, so a NaN equals itself, and 0.0 differs from -0.0. The padding
/// bytes of a struct are compared too. A rank without a group in a family skips it.
///
/// Collective over this rank's groups in the families; blocks. Cost: one hash (XXH3) of the
/// values, and one all_gather of 40 bytes per family; if the values differ, also an all_reduce of
/// 80 bytes per buffer, and another all_gather and a broadcast for the first buffer that differs.
/// @param values  One host buffer, or a list of host buffers.
/// @param name    What the values are called in the message.
/// @throws MismatchError on all members of each group whose members differ. For each rank whose
/// values are not those of the majority, the message gives its coordinates, the first element that
/// differs, both values of it, and the number of elements that differ (docs/helpers.md).
/// @throws UnknownName if a family does not exist; UsageError if a buffer whose kind is known at
/// run time is device memory.
template <Buffers Values>
void check_equal(Mesh& mesh, const Values& values, const FamilyNames& families,
                 std::string_view name = "the values") {
  std::vector<detail::ReplicaBuffer> buffers;
  for_each_buffer(values, [&](const auto& buffer, std::size_t) {
    using T = ElementOf<decltype(buffer)>;
    static_assert(!DeviceMemory<decltype(buffer)>, "copy device memory to the host before");
    const ConstBuffer memory = buffer_of(buffer).as_input();
    detail::require_host(memory);
    buffers.push_back({memory, detail::ElementUnits<T>::units});
  });
  detail::check_replicas(mesh, buffers, families, name);
}

}  // namespace rankmesh
