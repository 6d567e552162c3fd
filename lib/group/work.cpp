#include "rankmesh/group/work.hpp"

#include "detail/mesh_runtime.hpp"

namespace rankmesh {

bool Work::test() {
  if (operation_ == nullptr) return true;
  const detail::CallLock lock{*runtime_};
  if (!runtime_->in_flight.test(*operation_)) return false;
  operation_.reset();
  return true;
}

void Work::wait() {
  if (operation_ == nullptr) return;
  const detail::CallLock lock{*runtime_};
  if (operation_->is_on_device && operation_->pending != nullptr && operation_->failure.empty())
    operation_->pending->order_before(operation_->stream);
  else
    runtime_->in_flight.wait(*operation_, runtime_->control->monitor,
                             Deadline{operation_->connection->group.timeout});
}

void Work::wait(Deadline::Duration timeout) {
  if (operation_ == nullptr) return;
  const detail::CallLock lock{*runtime_};
  runtime_->in_flight.wait(*operation_, runtime_->control->monitor, Deadline{timeout});
  operation_.reset();
}

}  // namespace rankmesh
