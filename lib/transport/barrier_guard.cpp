// SPDX-License-Identifier: BSD-3-Clause
#include "detail/barrier_guard.hpp"

namespace rankmesh::detail {

bool BarrierGuard::meet(const Call& call, bool is_async, Waiter& waiter) {
  auto barrier = mpi_.start({.operation = Operation::barrier});
  waiter.finish(call, mpi_.calls(), std::move(barrier));
  return is_async;
}

std::unique_ptr<Pending> BarrierGuard::start_comparison(const Call&, Carry carry) {
  mpi_.set_calls(mpi_.calls() + 1);
  if (carry) carry();
  return nullptr;
}

}  // namespace rankmesh::detail
