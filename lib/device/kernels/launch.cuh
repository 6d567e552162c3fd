// SPDX-License-Identifier: BSD-3-Clause
// Launches kernels. The tests compile this file and the kernels for the CPU too, with stand-ins for
// threadIdx, the arithmetic intrinsics and cudaLaunchKernelEx (tests/device/kernels_on_double.cpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {

constexpr std::int64_t most_threads = 256;  // per block

// So many blocks occupy every device: a multiprocessor runs at most 8 blocks of 256 threads at a
// time, and the largest devices have fewer than 256 multiprocessors.
constexpr std::int64_t enough_blocks = 2048;

/// Returns the number of threads of a block whose threads share `words` loads: whole warps, and no
/// more than the loads need.
inline unsigned threads_for(std::int64_t words) {
  constexpr std::int64_t warp = 32;
  return static_cast<unsigned>(std::clamp((words + warp - 1) / warp * warp, warp, most_threads));
}

inline unsigned blocks_for(std::int64_t work) {
  return static_cast<unsigned>(std::min<std::int64_t>(work, 65535));
}

template <class Word>
bool is_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(Word) == 0;
}

/// Queues a kernel on the stream. Returns the error of this launch. cudaGetLastError() could return
/// an older error of the program instead.
template <class Work>
void start(void (*kernel)(Work), const char* name, dim3 blocks, dim3 threads, const Work& work,
           StreamRef stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = static_cast<cudaStream_t>(stream.native());
  check(cudaLaunchKernelEx(&config, kernel, work), name);
}

/// Queues a kernel that copies rows. A row of threads (threadIdx.y) copies one row, so that narrow
/// rows do not leave threads idle. If there are few rows, several blocks (blockIdx.y) share each
/// row, so that long rows use all multiprocessors.
/// @param words  What the longest row has to load.
template <class Work>
void start_with_rows(void (*kernel)(Work), const char* name, std::int64_t words, std::int64_t rows,
                     const Work& work, StreamRef stream) {
  std::int64_t width = 1;  // of a row of threads
  while (width < words && width < most_threads) width *= 2;
  const std::int64_t height = most_threads / width;
  const std::int64_t blocks = blocks_for((rows + height - 1) / height);
  const std::int64_t shares = std::clamp<std::int64_t>(
      (words + width - 1) / width, 1, std::max<std::int64_t>(enough_blocks / blocks, 1));
  start(kernel, name, dim3{static_cast<unsigned>(blocks), static_cast<unsigned>(shares)},
        dim3{static_cast<unsigned>(width), static_cast<unsigned>(height)}, work, stream);
}

/// Makes CUDA load a kernel, which it would otherwise do in the first launch. Errors are ignored:
/// the launch returns them.
template <class Work>
void load(void (*kernel)(Work)) noexcept {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)) != cudaSuccess)
    (void)cudaGetLastError();
}

}  // namespace rankmesh::device
