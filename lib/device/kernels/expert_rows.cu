// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the expert dispatcher. Each block of threads works on one row.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device/kernels/expert_rows.hpp"
#include "rankmesh/device/cuda.hpp"

namespace rankmesh::device {
namespace {

constexpr int threads = 256;

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
// The product is rounded before the sum, as on the host; the compiler must not fuse them.
__device__ float add_product(float sum, float a, float b) {
  return __fadd_rn(sum, __fmul_rn(a, b));
}
__device__ double add_product(double sum, double a, double b) {
  return __dadd_rn(sum, __dmul_rn(a, b));
}

template <class Value>
__global__ void weighted_sum(WeightedSum work) {
  const std::int64_t row_bytes = work.row_elements * static_cast<std::int64_t>(sizeof(Value));
  for (std::int64_t t = blockIdx.x; t < work.tokens; t += gridDim.x) {
    Value* to = reinterpret_cast<Value*>(work.to + t * row_bytes);
    for (std::int64_t h = threadIdx.x; h < work.row_elements; h += blockDim.x) {
      decltype(widened(Value{})) sum = 0;
      for (std::int64_t j = t * work.top_k; j < (t + 1) * work.top_k; ++j) {
        const std::int64_t index = work.index[j];
        if (index < 0) continue;
        const Value* row = reinterpret_cast<const Value*>(row_of(work, index, row_bytes));
        sum = add_product(sum, work.weight[j], widened(row[h]));
      }
      store(to[h], sum);
    }
  }
}

unsigned grid(std::int64_t rows) { return static_cast<unsigned>(rows < 65535 ? rows : 65535); }

template <class Word>
bool fits(const GatherRows& work) {
  const auto aligned = [](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % sizeof(Word) == 0;
  };
  return work.row_bytes % static_cast<std::int64_t>(sizeof(Word)) == 0 && aligned(work.to) &&
         aligned(work.from) && aligned(work.other);
}

}  // namespace

void launch(const GatherRows& work, StreamRef stream) {
  if (work.rows == 0 || work.row_bytes == 0) return;
  const auto native = static_cast<cudaStream_t>(stream.native());
  if (fits<uint4>(work))
    gather_rows<uint4><<<grid(work.rows), threads, 0, native>>>(work);
  else if (fits<std::uint32_t>(work))
    gather_rows<std::uint32_t><<<grid(work.rows), threads, 0, native>>>(work);
  else
    gather_rows<std::uint8_t><<<grid(work.rows), threads, 0, native>>>(work);
  check(cudaGetLastError(), "gather_rows");
}

void launch(const WeightedSum& work, StreamRef stream) {
  if (work.tokens == 0 || work.row_elements == 0) return;
  const auto native = static_cast<cudaStream_t>(stream.native());
  if (work.type == DataType::float32)
    weighted_sum<float><<<grid(work.tokens), threads, 0, native>>>(work);
  else if (work.type == DataType::float64)
    weighted_sum<double><<<grid(work.tokens), threads, 0, native>>>(work);
  else if (work.type == DataType::float16)
    weighted_sum<__half><<<grid(work.tokens), threads, 0, native>>>(work);
  else
    weighted_sum<__nv_bfloat16><<<grid(work.tokens), threads, 0, native>>>(work);
  check(cudaGetLastError(), "weighted_sum");
}

}  // namespace rankmesh::device
