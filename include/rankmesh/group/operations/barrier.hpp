// SPDX-License-Identifier: BSD-3-Clause
// Waits for all members.
#pragma once

#include "rankmesh/group/detail/operation_forms.hpp"

namespace rankmesh {

/// barrier() blocks until all members have called it. Collective over the group.
class Barrier : public detail::OperationForms<Operation::barrier> {
 public:
  /// Waits for all members.
  void barrier() { issuer().run_fast<Operation::barrier>(call()); }
  /// Starts a barrier; returns a Work.
  [[nodiscard]] Work barrier_async() { return issuer().start_any(call(), {}); }

 private:
  Call call() { return {.operation = Operation::barrier, .name_index = issuer().name_index()}; }
};

}  // namespace rankmesh
