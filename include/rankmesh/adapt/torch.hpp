// SPDX-License-Identifier: BSD-3-Clause
// Operations take tensors of libtorch.
#pragma once

#include <string>

#include <torch/types.h>
#include <torch/version.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/base/memory.hpp"

/// Describes a dense torch::Tensor, whose element type and device are known at run time.
template <>
struct rankmesh::MemoryOf<torch::Tensor> {
  static constexpr Ownership ownership = Ownership::shared;  ///< Tensors share their storage.
  static constexpr const char* copy =
      "pass tensor.contiguous(), and copy a result back with copy_()";  ///< See MemoryOf.
  /// Returns the address of the first element.
  static void* data(const torch::Tensor& tensor) { return tensor.data_ptr(); }
  /// Returns the axes.
  static ArrayShape shape(const torch::Tensor& tensor) {
    return {tensor.sizes(), tensor.strides()};
  }
  /// Returns the type of the elements.
  /// @throws UsageError if rankmesh does not have it.
  static DataType type(const torch::Tensor& tensor) {
    switch (tensor.scalar_type()) {
      case torch::kInt8:
        return DataType::int8;
      case torch::kUInt8:
        return DataType::uint8;
      case torch::kInt16:
        return DataType::int16;
      case torch::kInt32:
        return DataType::int32;
      case torch::kInt64:
        return DataType::int64;
      case torch::kFloat16:
        return DataType::float16;
      case torch::kBFloat16:
        return DataType::bfloat16;
      case torch::kFloat32:
        return DataType::float32;
      case torch::kFloat64:
        return DataType::float64;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 3)
      case c10::ScalarType::UInt16:
        return DataType::uint16;
      case c10::ScalarType::UInt32:
        return DataType::uint32;
      case c10::ScalarType::UInt64:
        return DataType::uint64;
      case c10::ScalarType::Float8_e4m3fn:
        return DataType::float8_e4m3;
      case c10::ScalarType::Float8_e5m2:
        return DataType::float8_e5m2;
#endif
      default:
        throw UsageError{
            std::string{"a tensor of "} + c10::toString(tensor.scalar_type()) + " cannot be passed",
            "pass complex numbers as torch::view_as_real(tensor), and bool as "
            "tensor.view(torch::kUInt8)"};
    }
  }
  /// Returns the kind of the memory.
  /// @throws UsageError if the tensor is neither in host memory nor in that of a CUDA device.
  static MemoryKind kind(const torch::Tensor& tensor) {
    if (!tensor.is_cuda() && !tensor.is_cpu())
      throw UsageError{"a tensor on " + tensor.device().str() + " cannot be passed",
                       "pass tensor.cpu(), and copy a result back with copy_()"};
    return tensor.is_cuda() ? MemoryKind::device : MemoryKind::host;
  }
};
