// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the expert dispatcher. Each block of threads works on one row.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/detail/private_api.hpp"
#include "device/kernels/launch.cuh"
#include "device/kernels/load.hpp"
#include "exchange/kernels/expert_rows.hpp"

namespace rankmesh::device {
namespace {

__device__ const std::byte* row_of(const GatherRows& work, std::int64_t index) {
  return index < work.split ? work.from + index * work.row_bytes
                            : work.other + (index - work.split) / work.share * work.row_bytes;
}
__device__ const std::byte* row_of(const WeightedSum& work, std::int64_t index,
                                   std::int64_t row_bytes) {
  return index < work.split ? work.from + index * row_bytes
                            : work.other + (index - work.split) * row_bytes;
}

// Word is the widest type that divides all addresses and the length of the row.
template <class Word>
__global__ void gather_rows(GatherRows work) {
  const std::int64_t words = work.row_bytes / static_cast<std::int64_t>(sizeof(Word));
  for (std::int64_t i = blockIdx.x; i < work.rows; i += gridDim.x) {
    const std::int64_t index = work.index[i];
    if (index == GatherRows::keep) continue;
    Word* to = reinterpret_cast<Word*>(work.to + i * work.row_bytes);
    if (index == GatherRows::zeros) {
      for (std::int64_t w = threadIdx.x; w < words; w += blockDim.x) to[w] = Word{};
    } else {
      const Word* from = reinterpret_cast<const Word*>(row_of(work, index));
      for (std::int64_t w = threadIdx.x; w < words; w += blockDim.x) to[w] = from[w];
    }
  }
}

__device__ float widened(float value) { return value; }
__device__ float widened(__half value) { return __half2float(value); }
__device__ float widened(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ double widened(double value) { return value; }
__device__ void store(float& to, float value) { to = value; }
__device__ void store(__half& to, float value) { to = __float2half_rn(value); }
__device__ void store(__nv_bfloat16& to, float value) { to = __float2bfloat16_rn(value); }
__device__ void store(double& to, double value) { to = value; }
// The product is rounded before the sum, as on the host. The compiler must not fuse the two
// operations.
__device__ float add_product(float sum, float a, float b) {
  return __fadd_rn(sum, __fmul_rn(a, b));
}
__device__ double add_product(double sum, double a, double b) {
  return __dadd_rn(sum, __dmul_rn(a, b));
}

// Neighbouring values of a row that one thread loads, sums and stores together.
template <class Value, int width>
struct alignas(sizeof(Value) * width) Pack {
  Value values[width];
};

// One load of a pack is 16 bytes: 8 values of 16 bits. The index and the weight of a choice are
// then read once per pack.
template <class Value>
constexpr int widest = 16 / sizeof(Value);

template <class Value, int width>
__global__ void weighted_sum(WeightedSum work) {
  using Sum = decltype(widened(Value{}));
  using Values = Pack<Value, width>;
  const std::int64_t row_bytes = work.row_elements * static_cast<std::int64_t>(sizeof(Value));
  const std::int64_t packs = work.row_elements / width;
  for (std::int64_t t = blockIdx.x; t < work.tokens; t += gridDim.x) {
    Values* to = reinterpret_cast<Values*>(work.to + t * row_bytes);
    for (std::int64_t p = threadIdx.x; p < packs; p += blockDim.x) {
      Sum sums[width] = {};
      for (std::int64_t j = t * work.top_k; j < (t + 1) * work.top_k; ++j) {
        const std::int64_t index = work.index[j];
        if (index < 0) continue;
        const Values row = reinterpret_cast<const Values*>(row_of(work, index, row_bytes))[p];
        const Sum weight = work.has_weights_of_type
                               ? widened(static_cast<const Value*>(work.weight)[j])
                               : static_cast<Sum>(static_cast<const float*>(work.weight)[j]);
        for (int i = 0; i < width; ++i)
          sums[i] = add_product(sums[i], weight, widened(row.values[i]));
      }
      Values result;
      for (int i = 0; i < width; ++i) store(result.values[i], sums[i]);
      to[p] = result;
    }
  }
}

template <class Word>
bool fits(const GatherRows& work) {
  return work.row_bytes % static_cast<std::int64_t>(sizeof(Word)) == 0 &&
         is_aligned<Word>(work.to) && is_aligned<Word>(work.from) && is_aligned<Word>(work.other);
}
template <class Word>
void start_with(const GatherRows& work, StreamRef stream) {
  start(gather_rows<Word>, "gather_rows", dim3{blocks_for(work.rows)},
        dim3{threads_for(work.row_bytes / static_cast<std::int64_t>(sizeof(Word)))}, work, stream);
}

template <class Value, int width>
void start_with(const WeightedSum& work, StreamRef stream) {
  start(weighted_sum<Value, width>, "weighted_sum", dim3{blocks_for(work.tokens)},
        dim3{threads_for(work.row_elements / width)}, work, stream);
}
template <class Value>
void start_with(const WeightedSum& work, StreamRef stream) {
  using Values = Pack<Value, widest<Value>>;
  if (work.row_elements % widest<Value> == 0 && is_aligned<Values>(work.to) &&
      is_aligned<Values>(work.from) && is_aligned<Values>(work.other))
    start_with<Value, widest<Value>>(work, stream);
  else
    start_with<Value, 1>(work, stream);
}

const KernelsToLoad expert_row_kernels{[]() noexcept {
  load(gather_rows<uint4>);
  load(gather_rows<std::uint32_t>);
  load(gather_rows<std::uint8_t>);
  load(weighted_sum<float, widest<float>>);
  load(weighted_sum<float, 1>);
  load(weighted_sum<double, widest<double>>);
  load(weighted_sum<double, 1>);
  load(weighted_sum<__half, widest<__half>>);
  load(weighted_sum<__half, 1>);
  load(weighted_sum<__nv_bfloat16, widest<__nv_bfloat16>>);
  load(weighted_sum<__nv_bfloat16, 1>);
}};

}  // namespace

RANKMESH_PRIVATE_API void launch(const GatherRows& work, StreamRef stream) {
  if (work.rows == 0 || work.row_bytes == 0) return;
  if (fits<uint4>(work))
    start_with<uint4>(work, stream);
  else if (fits<std::uint32_t>(work))
    start_with<std::uint32_t>(work, stream);
  else
    start_with<std::uint8_t>(work, stream);
}

RANKMESH_PRIVATE_API void launch(const WeightedSum& work, StreamRef stream) {
  if (work.tokens == 0 || work.row_elements == 0) return;
  if (work.type == DataType::float32)
    start_with<float>(work, stream);
  else if (work.type == DataType::float64)
    start_with<double>(work, stream);
  else if (work.type == DataType::float16)
    start_with<__half>(work, stream);
  else
    start_with<__nv_bfloat16>(work, stream);
}

}  // namespace rankmesh::device
