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

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::barrier:
      return "barrier";
    case Operation::broadcast:
      return "broadcast";
    case Operation::reduce:
      return "reduce";
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::all_gather:
      return "all_gather";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::gather:
      return "gather";
    case Operation::scatter:
      return "scatter";
    case Operation::all_to_all:
      return "all_to_all";
    case Operation::send:
      return "send";
    case Operation::recv:
      return "recv";
    case Operation::send_recv:
      return "send_recv";
  }
  return "?";
}

}  // namespace rankmesh
