// SPDX-License-Identifier: BSD-3-Clause
// Several operations in progress.
#pragma once

#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/work.hpp"

namespace rankmesh::exchange {

/// The operations that a function has started. The list is complete when all of them are; an
/// empty list is complete. The buffers must stay valid until then, also if this object is
/// destroyed earlier.
class RANKMESH_API WorkList {
 public:
  /// Adds an operation.
  void add(Work work) { works_.push_back(std::move(work)); }
  /// Makes progress and returns whether all operations are complete. Does not block.
  /// @throws  The error of an operation that failed.
  [[nodiscard]] bool test();
  /// Waits for each operation, see Work::wait(): on host memory it blocks until the operation is
  /// complete, on device memory it makes the stream wait.
  void wait();
  /// Blocks until all operations are complete, also on device memory.
  /// @param timeout  For all operations together. @throws TimeoutError
  void wait(Deadline::Duration timeout);

 private:
  std::vector<Work> works_;
};

}  // namespace rankmesh::exchange
