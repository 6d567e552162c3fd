// SPDX-License-Identifier: BSD-3-Clause
#include "detail/fused_calls.hpp"

#include <utility>

#include "rankmesh/base/error.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::detail {

FusedCalls::FusedCalls(GroupCoordinator& group) : runtime_{&GroupAccess::runtime(group)} {
  const CallLock lock{*runtime_};
  if (runtime_->is_closed || runtime_->batch.is_open() || !runtime_->batch.has_devices()) {
    runtime_ = nullptr;
    return;
  }
  runtime_->batch.begin();
}

FusedCalls::~FusedCalls() {
  try {
    end();
  } catch (const Error&) {
    // The groups are marked as broken: their next operation says why.
  }
}

void FusedCalls::end() {
  if (runtime_ == nullptr) return;
  MeshRuntime& runtime = *std::exchange(runtime_, nullptr);
  const CallLock lock{runtime};
  runtime.batch.end(runtime.control->deadline());
}

}  // namespace rankmesh::detail
