// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mesh/nccl_group.hpp"

#include <utility>

#include "detail/state.hpp"

namespace rankmesh {

NcclGroup::NcclGroup(Mesh& mesh) : runtime_{mesh.open_state("an NcclGroup").runtime} {
  const detail::CallLock lock{*runtime_};
  runtime_->batch.begin();
}

NcclGroup::~NcclGroup() {
  try {
    end();
  } catch (...) {
    // The groups are marked as broken, so their next operation reports the reason.
  }
}

void NcclGroup::end() {
  const auto runtime = std::exchange(runtime_, nullptr);
  if (runtime == nullptr || runtime->is_closed) return;  // the end of the mesh has ended the batch
  const detail::CallLock lock{*runtime};
  try {
    runtime->batch.end(runtime->control->deadline());
  } catch (const Error& error) {
    runtime->throw_if_result_of_loss(error);
    throw;
  }
}

}  // namespace rankmesh
