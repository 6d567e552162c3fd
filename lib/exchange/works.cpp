#include "rankmesh/exchange/works.hpp"

#include <algorithm>

namespace rankmesh::exchange {

bool Works::test() {
  std::erase_if(works_, [](Work& work) { return work.test(); });
  return works_.empty();
}

void Works::wait() {
  for (Work& work : works_) work.wait();
  works_.clear();
}

void Works::wait(Deadline::Duration timeout) {
  const Deadline deadline{timeout};
  for (Work& work : works_) work.wait(deadline.left());
  works_.clear();
}

}  // namespace rankmesh::exchange
