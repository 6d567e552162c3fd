// SPDX-License-Identifier: BSD-3-Clause
// The kernels as a whole: whether this build has them, and loading them.
#pragma once

namespace rankmesh::device {

/// Returns whether rankmesh was built with nvcc. Without kernels, the functions named launch()
/// throw NoDeviceError.
bool has_kernels() noexcept;

/// Loads all kernels on the current device. CUDA loads a kernel in its first launch by default, and
/// may first wait for all work of the device ("Lazy Loading" in the CUDA Programming Guide). If an
/// NCCL operation on the device then waits for another rank, and that rank waits for this rank,
/// both ranks hang. Call this function before the first operation of NCCL.
void load_kernels() noexcept;

// Each source with kernels has such a function. load_kernels() calls all of them.
void load_expert_rows() noexcept;
void load_move_pieces() noexcept;
void load_move_rows() noexcept;

}  // namespace rankmesh::device
