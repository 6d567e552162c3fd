// SPDX-License-Identifier: BSD-3-Clause
// Issues calls with functions of NCCL.
#pragma once

#include <cstdint>

#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Issues the call on its stream. If it consists of several NCCL calls, they are grouped.
/// @param rank, size  The rank of this process in the group, and the size of the group.
/// @return true if NCCL has not carried out the call yet: the communicator does not block
/// @throws nccl::NcclError
bool issue_nccl_call(const Call& call, const nccl::Communicator& comm, int rank, int size);

/// Checks that NCCL supports the call. NCCL's own check would break a communicator that does not
/// block.
/// @param least_compute_capability  Of the members' devices: 90 for 9.0.
/// @param size  The size of the group.
/// @throws UnsupportedError
void validate_nccl_call(const Call& call, const nccl::Library& library,
                        int least_compute_capability, std::int64_t size);

}  // namespace rankmesh::detail
