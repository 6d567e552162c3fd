// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mesh/nccl_group.hpp"

#include <utility>

#include "detail/state.hpp"

namespace rankmesh {

NcclGroup::NcclGroup(Mesh& mesh) : state_{&mesh.open_state("an NcclGroup")} {
  const detail::CallLock lock{*state_->runtime};
  state_->runtime->batch.begin();
}

NcclGroup::~NcclGroup() {
  try {
    end();
  } catch (const Error&) {
    // The groups are marked as broken, so their next operation reports the reason.
  }
}

void NcclGroup::end() {
  if (state_ == nullptr) return;
  detail::MeshState& state = *std::exchange(state_, nullptr);
  const detail::CallLock lock{*state.runtime};
  try {
    state.runtime->batch.end(state.deadline());
  } catch (const Error& error) {
    state.runtime->throw_if_result_of_loss(error);
    throw;
  }
}

}  // namespace rankmesh
