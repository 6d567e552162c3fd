// What a batch does with device operations, without CUDA's or NCCL's headers.
#pragma once

#include "rankmesh/base/deadline.hpp"

namespace rankmesh {

/// Gathers the device operations that are issued between begin() and end().
class DeviceBatch {
 public:
  virtual ~DeviceBatch() = default;
  /// Begins to gather operations. @throws UsageError when a batch is open in this thread.
  virtual void begin() = 0;
  /// Issues everything. The batch is closed afterwards, whatever is thrown.
  virtual void end(const Deadline& deadline) = 0;
};

}  // namespace rankmesh
