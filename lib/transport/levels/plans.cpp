// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/plan.hpp"

namespace rankmesh::levels {

extern const Plan barrier, broadcast, reduce, all_reduce, all_gather, reduce_scatter, gather,
    scatter;

const Plan* plan_of(Operation operation) {
  for (const Plan* plan : {&barrier, &broadcast, &reduce, &all_reduce, &all_gather, &reduce_scatter,
                           &gather, &scatter})
    if (plan->operation == operation) return plan;
  return nullptr;
}

}  // namespace rankmesh::levels
