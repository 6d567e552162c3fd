#include "rankmesh/group/detail/fused_calls.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace rankmesh::detail {

void begin_batch(MeshServices& services) {
  if (services.in_batch)
    throw UsageError{"an NCCL group is begun inside another", "end the first before the second"};
  if (services.begin_batch) services.begin_batch();
  services.in_batch = true;
  ++services.unusual;
}

void end_batch(MeshServices& services) {
  services.in_batch = false;
  --services.unusual;
  std::vector<Gathered> gathered = std::exchange(services.gathered, {});
  std::ranges::stable_sort(gathered, {}, &Gathered::place);
  std::exception_ptr failure;
  std::string why;
  const auto guarded = [&](const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      if (failure != nullptr) return;
      failure = std::current_exception();
      why = error.message();
    }
  };
  for (const Gathered& operation : gathered)
    if (failure == nullptr)
      guarded(operation.issue);
    else if (operation.give_up)
      operation.give_up(why);
  if (services.end_batch)
    guarded(services.end_batch);  // whatever happened: the thread is in NCCL's group
  if (failure != nullptr) std::rethrow_exception(failure);
}

FusedCalls::FusedCalls(GroupCoordinator& group) : services_{&group.services()} {
  const CallGuard guard{*services_};
  if (services_->closed || services_->in_batch || !services_->begin_batch) {
    services_ = nullptr;
    return;
  }
  begin_batch(*services_);
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
  end_batch(services);
}

}  // namespace rankmesh::detail
