// A call in NCCL's terms.
#pragma once

#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Issues the call on its stream; several NCCL calls are grouped. @throws nccl::NcclError.
/// @param rank, size  Of this process in the group.
void issue_nccl_call(const Call& call, const nccl::Communicator& comm, int rank, int size);

/// @throws UnsupportedError for a call that NCCL would refuse, or carry out wrongly.
void validate_nccl_call(const Call& call, const nccl::Library& library);

}  // namespace rankmesh::detail
