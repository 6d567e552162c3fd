#include "rankmesh/group/detail/fused_calls.hpp"

#include <utility>

namespace rankmesh::detail {

FusedCalls::FusedCalls(GroupCoordinator& group) : services_{&group.services()} {
  const CallGuard guard{*services_};
  if (services_->closed || services_->in_batch || !services_->begin_batch) {
    services_ = nullptr;
    return;
  }
  services_->begin_batch();
  services_->in_batch = true;
}

FusedCalls::~FusedCalls() {
  try {
    end();
  } catch (const Error& error) {
    // The groups are marked: their next operation says why.
  }
}

void FusedCalls::end() {
  if (services_ == nullptr) return;
  MeshServices& services = *std::exchange(services_, nullptr);
  const CallGuard guard{services};
  services.in_batch = false;
  services.end_batch();
}

}  // namespace rankmesh::detail
