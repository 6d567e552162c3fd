// SPDX-License-Identifier: BSD-3-Clause
// The operations of MPI by which the predefined reductions follow one rule (docs/arithmetic.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::detail {

/// Returns whether MPI libraries compute this reduction in different ways. When one operand is NaN,
/// the result of their minimum depends on the order of the operands. Several versions compare
/// unsigned integers as signed ones (pmodels/mpich#6083, open-mpi/ompi#10525). Open MPI adds
/// integers of 8 and 16 bits with saturation in the part of the buffer that fills vector registers
/// (open-mpi/ompi#8045).
[[nodiscard]] constexpr bool needs_own_operation(ReduceOp op, DataType type) {
  const bool is_small = size_of(type) <= 2;
  switch (type) {
    case DataType::float32:
    case DataType::float64:
      return op == ReduceOp::min || op == ReduceOp::max;
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32:
    case DataType::uint64:
      return is_small || op == ReduceOp::min || op == ReduceOp::max;
    case DataType::int8:
    case DataType::int16:
      return op != ReduceOp::min && op != ReduceOp::max;
    case DataType::int32:
    case DataType::int64:
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return false;
  }
  return false;
}

/// Returns the operation for elements of this type: MPI's own operation if it follows the rule,
/// otherwise an operation that calls reduce() of reduce_kernels.hpp. It returns the sum for an
/// average. The own operations are created at the first use and freed at the start of MPI_Finalize.
/// Thread-safe.
[[nodiscard]] MPI_Op mpi_operation(ReduceOp op, DataType type);

/// Returns whether a blocking all_reduce or reduce of `bytes` bytes with an own operation is to run
/// in two steps. MPICH divides a large reduction among the ranks only for predefined operations of
/// MPI. With other operations, each rank reduces the whole buffer, which took up to 2.5 times as
/// long.
[[nodiscard]] constexpr bool prefers_two_steps(std::int64_t bytes) {
#ifdef MPICH_NUMVERSION
  return bytes >= 16384;
#else
  (void)bytes;
  return false;
#endif
}

/// A blocking all_reduce by MPI_Reduce_scatter_block and MPI_Allgather. Collective.
/// @param in  equal to `out` for an operation in place.
void all_reduce_in_two_steps(const std::byte* in, std::byte* out, int count, DataType type,
                             MPI_Op op, MPI_Comm comm);
/// A blocking reduce by MPI_Reduce_scatter_block and MPI_Gather. Collective.
/// @param in   equal to `out` at the root for an operation in place.
/// @param out  not used on other ranks.
void reduce_in_two_steps(const std::byte* in, std::byte* out, int count, DataType type, MPI_Op op,
                         int root, MPI_Comm comm);

}  // namespace rankmesh::detail
