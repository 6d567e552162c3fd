// SPDX-License-Identifier: BSD-3-Clause
// The device operations of a batch, without the headers of CUDA and NCCL.
#pragma once

#include "rankmesh/base/deadline.hpp"

namespace rankmesh {

/// Defers device operations: the operations that are added after begin() are issued by end().
class DeviceBatch {
 public:
  virtual ~DeviceBatch() = default;
  /// Opens the batch.
  /// @throws UsageError if a batch is already open in this thread.
  virtual void begin() = 0;
  /// Issues the operations. The batch is closed afterwards, even after an exception.
  virtual void end(const Deadline& deadline) = 0;
};

}  // namespace rankmesh
