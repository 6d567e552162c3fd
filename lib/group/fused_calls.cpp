// SPDX-License-Identifier: BSD-3-Clause
#include "detail/fused_calls.hpp"

#include <utility>

#include "base/detail/private_api.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::detail {

RANKMESH_PRIVATE_API FusedCalls::FusedCalls(GroupCoordinator& group)
    : runtime_{&GroupAccess::runtime(group)} {
  const CallLock lock{*runtime_};
  if (runtime_->is_closed || runtime_->batch.is_open() || !runtime_->batch.has_devices()) {
    runtime_ = nullptr;
    return;
  }
  runtime_->batch.begin();
}

RANKMESH_PRIVATE_API FusedCalls::~FusedCalls() {
  try {
    end();
  } catch (...) {
    // The groups are marked as broken: their next operation says why.
  }
}

RANKMESH_PRIVATE_API void FusedCalls::end() {
  if (runtime_ == nullptr) return;
  MeshRuntime& runtime = *std::exchange(runtime_, nullptr);
  const CallLock lock{runtime};
  runtime.batch.end(runtime.control->deadline());
}

}  // namespace rankmesh::detail
