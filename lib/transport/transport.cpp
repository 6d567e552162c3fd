#include "rankmesh/transport/transport.hpp"

#include <thread>

namespace rankmesh {

bool Pending::wait(const Deadline& deadline) {
  while (!test()) {
    if (deadline.passed()) return test();
    std::this_thread::yield();
  }
  return true;
}

}  // namespace rankmesh
