// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/work_list.hpp"

#include <algorithm>

#include "group/detail/work_access.hpp"
#include "wait/detail/progress.hpp"

namespace rankmesh::exchange {

bool WorkList::test() {
  std::erase_if(works_, [](Work& work) { return rankmesh::detail::WorkAccess::test_alone(work); });
  if (works_.empty()) return true;
  rankmesh::detail::advance_between_tests();
  return false;
}

void WorkList::wait() {
  for (Work& work : works_) work.wait();
  works_.clear();
}

void WorkList::wait(Deadline::Duration timeout) {
  const Deadline deadline{timeout};
  for (Work& work : works_) work.wait(deadline.left());
  works_.clear();
}

}  // namespace rankmesh::exchange
