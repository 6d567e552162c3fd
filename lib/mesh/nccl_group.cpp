#include "rankmesh/mesh/nccl_group.hpp"

#include "detail/state.hpp"

namespace rankmesh {

NcclGroup::NcclGroup(Mesh& mesh) : state_{&mesh.open_state("an NcclGroup")} {
  const detail::CallGuard guard{*state_->services};
  if (state_->device != nullptr) state_->device->begin_batch();
  state_->services->in_batch = true;
  ++state_->services->unusual;
}

NcclGroup::~NcclGroup() {
  try {
    end();
  } catch (const Error& error) {
    // end_batch() has marked the groups: their next operation says why.
  }
}

void NcclGroup::end() {
  if (state_ == nullptr) return;
  detail::MeshState& state = *std::exchange(state_, nullptr);
  const detail::CallGuard guard{*state.services};
  state.services->in_batch = false;
  --state.services->unusual;
  if (state.device != nullptr) state.device->end_batch(state.deadline());
}

}  // namespace rankmesh
