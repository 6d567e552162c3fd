// SPDX-License-Identifier: BSD-3-Clause
// The kernels as a whole: whether this build has them, and loading them.
#pragma once

namespace rankmesh::device {

/// Returns whether rankmesh was built with nvcc. Without kernels, the functions named launch()
/// throw NoDeviceError.
bool has_kernels() noexcept;

/// Loads all kernels on the current device. CUDA loads a kernel in its first launch by default, and
/// may wait for all work of the device before it does ("Lazy Loading" in the CUDA Programming
/// Guide). If an operation of NCCL is on the device by then and waits for another rank, which waits
/// for this one, both hang. Call this function before the first operation of NCCL.
void load_kernels() noexcept;

// One for each source with kernels; load_kernels() calls them.
void load_expert_rows() noexcept;
void load_move_pieces() noexcept;

}  // namespace rankmesh::device
