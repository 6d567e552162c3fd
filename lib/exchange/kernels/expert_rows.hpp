// SPDX-License-Identifier: BSD-3-Clause
// The work of an expert dispatcher on rows: gathering rows, and weighted sums of rows. The
// arguments are the same for host memory and for the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh::device {

/// Copies rows: row i of `to` becomes row index[i] of `from`. If index[i] >= split, it becomes row
/// (index[i] - split) / share of `other` instead, so `share` consecutive indices refer to the same
/// row of `other`.
struct GatherRows {
  static constexpr std::int64_t zeros = -1;  ///< As an index: the row becomes zeros.
  static constexpr std::int64_t keep = -2;   ///< As an index: the row is not written.

  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* other = nullptr;
  const std::int64_t* index = nullptr;  ///< `rows` entries.
  std::int64_t rows = 0;
  std::int64_t split = INT64_MAX;
  std::int64_t share = 1;
  std::int64_t row_bytes = 0;
};

/// Sums rows: row t of `to` becomes the sum over j of weight[t, j] x row index[t, j] of `from`. If
/// the index is `split` or more, the row is row index[t, j] - split of `other`; if it is negative,
/// nothing is added.
///
/// Rows have `row_elements` elements of `type` (float32, float16, bfloat16 or float64). Products
/// and sums are computed in the order of j in float32, for float64 rows in float64. Each product
/// and each sum is rounded, and the result is rounded to `type` once.
struct WeightedSum {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* other = nullptr;
  const std::int64_t* index = nullptr;  ///< tokens x top_k entries.
  const void* weight = nullptr;         ///< tokens x top_k entries: float, or of `type`.
  std::int64_t tokens = 0;
  std::int64_t top_k = 0;
  std::int64_t split = INT64_MAX;
  std::int64_t row_elements = 0;
  DataType type = DataType::float32;
  bool has_weights_of_type = false;  ///< Whether the weights are of `type`.
};

/// Queue the work on a stream of the current device. All pointers are to device memory.
///
/// There are three implementations, one of which is linked: the kernels (expert_rows.cu, if there
/// is nvcc), functions that throw (no_kernels.cpp), and the kernels compiled for the CPU, whose
/// threads run one after the other on the stream of the CPU double (tests/device).
/// @throws CudaError  @throws NoDeviceError  rankmesh was built without nvcc.
void launch(const GatherRows& work, StreamRef stream);
void launch(const WeightedSum& work, StreamRef stream);

/// Do the work on host memory; block until it is done.
void run_on_host(const GatherRows& work);
void run_on_host(const WeightedSum& work);

}  // namespace rankmesh::device
