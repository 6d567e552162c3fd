// SPDX-License-Identifier: BSD-3-Clause
// The kernels as a whole: whether this build has them, and loading them.
#pragma once

#include "rankmesh/export.hpp"

namespace rankmesh::device {

/// Returns whether rankmesh was built with nvcc. Without kernels, the functions named launch()
/// throw NoDeviceError.
bool has_kernels() noexcept;

/// Throws that NoDeviceError.
[[noreturn]] void refuse_without_kernels();

/// Loads all kernels on the current device. CUDA loads a kernel in its first launch by default, and
/// may first wait for all work of the device ("Lazy Loading" in the CUDA Programming Guide). If an
/// NCCL operation on the device then waits for another rank, and that rank waits for this rank,
/// both ranks hang. Call this function before the first operation of NCCL.
void load_kernels() noexcept;

/// Kernels that load_kernels() loads. Each source with kernels has a static object of this class.
class RANKMESH_API KernelsToLoad {
 public:
  explicit KernelsToLoad(void (*load)() noexcept) noexcept;

 private:
  friend void load_kernels() noexcept;
  void (*load_)() noexcept;
  const KernelsToLoad* next_;
};

}  // namespace rankmesh::device
