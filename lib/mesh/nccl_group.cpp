#include "rankmesh/mesh/nccl_group.hpp"

#include "detail/state.hpp"
#include "rankmesh/group/detail/fused_calls.hpp"

namespace rankmesh {

NcclGroup::NcclGroup(Mesh& mesh) : state_{&mesh.open_state("an NcclGroup")} {
  const detail::CallGuard guard{*state_->services};
  detail::begin_batch(*state_->services);
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
  detail::end_batch(*state.services);
}

}  // namespace rankmesh
