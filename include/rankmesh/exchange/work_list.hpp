// SPDX-License-Identifier: BSD-3-Clause
// Several asynchronous operations.
#pragma once

#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/work.hpp"

namespace rankmesh::exchange {

/// Holds the operations that a function has started. The list is complete when all its operations
/// are complete. An empty list is complete. The buffers must stay valid until the list is complete,
/// even if the WorkList is destroyed earlier.
class RANKMESH_API WorkList {
 public:
  /// Adds an operation.
  void add(Work work) { works_.push_back(std::move(work)); }
  /// Makes progress and returns whether all operations are complete. Does not block.
  /// @throws the exception with which an operation failed.
  [[nodiscard]] bool test();
  /// Calls Work::wait() for each operation. For an operation on host memory, blocks until the
  /// operation is complete. For an operation on device memory, makes the stream wait for the
  /// operation.
  void wait();
  /// Blocks until all operations are complete, including the operations on device memory.
  /// @param timeout  The time limit for all operations together, in seconds.
  /// @throws TimeoutError if `timeout` passes.
  void wait(Deadline::Duration timeout);

 private:
  std::vector<Work> works_;
};

}  // namespace rankmesh::exchange
