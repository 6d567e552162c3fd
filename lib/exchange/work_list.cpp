// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/work_list.hpp"

#include <algorithm>

namespace rankmesh::exchange {

bool WorkList::test() {
  std::erase_if(works_, [](Work& work) { return work.test(); });
  return works_.empty();
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
