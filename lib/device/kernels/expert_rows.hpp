// What an expert dispatcher does with rows: gathering, and weighted sums. The same arguments on
// host memory and for the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh::device {

/// Row i of `to` becomes row index[i] of `from`; from `split` on: row (index[i] - split) / share of
/// `other`, each of whose rows serves `share` indices.
struct GatherRows {
  static constexpr std::int64_t zeros = -1;  ///< the row becomes zeros
  static constexpr std::int64_t keep = -2;   ///< the row stays as it is

  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* other = nullptr;
  const std::int64_t* index = nullptr;  ///< of `rows` entries
  std::int64_t rows = 0;
  std::int64_t split = INT64_MAX;
  std::int64_t share = 1;
  std::int64_t row_bytes = 0;
};

/// Row t of `to` becomes the sum over j of weight[t, j] x row index[t, j] of `from`, from `split`
/// on row index[t, j] - split of `other`; none where the index is negative. `row_elements` of
/// `type` (float32, float16, bfloat16 or float64); products and sums are of float32 (float64: of
/// that), in the order of j, each rounded; one rounding to `type` at the end.
struct WeightedSum {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  const std::byte* other = nullptr;
  const std::int64_t* index = nullptr;  ///< of tokens x top_k entries
  const float* weight = nullptr;        ///< of as many
  std::int64_t tokens = 0;
  std::int64_t top_k = 0;
  std::int64_t split = INT64_MAX;
  std::int64_t row_elements = 0;
  DataType type = DataType::float32;
};

/// Launchers: put the work on the stream of the current device and return. All pointers are to
/// device memory. Three implementations, one of which is linked: the kernels (expert_rows.cu, where
/// there is nvcc), a refusal (no_expert_rows.cpp), and the functions below on the stream of the CPU
/// double (tests/device).
/// @throws CudaError; NoDeviceError where rankmesh was built without nvcc.
void launch(const GatherRows& work, StreamRef stream);
void launch(const WeightedSum& work, StreamRef stream);

/// The same on host memory, at once.
void run_on_host(const GatherRows& work);
void run_on_host(const WeightedSum& work);

}  // namespace rankmesh::device
