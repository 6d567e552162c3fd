// SPDX-License-Identifier: BSD-3-Clause
// The device operations of a batch, without the headers of CUDA and NCCL.
#pragma once

#include "rankmesh/base/deadline.hpp"

namespace rankmesh {

/// Defers the device operations between begin() and end().
class DeviceBatch {
 public:
  virtual ~DeviceBatch() = default;
  /// Opens the batch. @throws UsageError  A batch is already open in this thread.
  virtual void begin() = 0;
  /// Issues the operations. The batch is closed afterwards, also after an exception.
  virtual void end(const Deadline& deadline) = 0;
};

}  // namespace rankmesh
