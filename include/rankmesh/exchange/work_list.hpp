// SPDX-License-Identifier: BSD-3-Clause
// Several operations in progress.
#pragma once

#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/work.hpp"

namespace rankmesh::exchange {

/// The operations that a function has started. The list is complete when all its operations are
/// complete; an empty list is complete. The buffers must stay valid until the list is complete,
/// even if this object is destroyed earlier.
class RANKMESH_API WorkList {
 public:
  /// Adds an operation.
  void add(Work work) { works_.push_back(std::move(work)); }
  /// Makes progress and returns whether all operations are complete. Does not block.
  /// @throws  It throws the error of an operation that failed.
  [[nodiscard]] bool test();
  /// Waits for each operation (see Work::wait()). On host memory it blocks until the operation is
  /// complete; on device memory it makes the stream wait for the operation.
  void wait();
  /// Blocks until all operations are complete, even on device memory.
  /// @param timeout  The time limit for all operations together. @throws TimeoutError
  void wait(Deadline::Duration timeout);

 private:
  std::vector<Work> works_;
};

}  // namespace rankmesh::exchange
