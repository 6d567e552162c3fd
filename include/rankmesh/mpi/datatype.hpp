// SPDX-License-Identifier: BSD-3-Clause
// Translates data types, reductions and large counts for MPI.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// Returns the MPI datatype that moves elements of this type. Types that MPI does not have are
/// moved as integers of the same size.
RANKMESH_API MPI_Datatype native(DataType type);
/// Returns the MPI datatype for reductions of this type.
/// @throws UnsupportedError  MPI has no reductions of half and 8-bit floating types.
RANKMESH_API MPI_Datatype native_for_reduction(DataType type);
/// Returns MPI's operation for this reduction. MPI has no average, so the result for `avg` is
/// MPI_SUM, and the caller divides the sum. What MPI's operations do with NaN and with overflow
/// differs between libraries; MpiTransport uses operations of its own there (docs/arithmetic.md).
RANKMESH_API MPI_Op native(ReduceOp op);

/// Expresses `count` elements as an int and a datatype. MPI counts in int, so a derived datatype
/// replaces a count of more than `largest` elements. The derived datatype has exactly the size and
/// extent of these elements, so that consecutive blocks have no gaps.
class RANKMESH_API CountedType {
 public:
  CountedType(std::int64_t count, DataType type, std::int64_t largest)
      : count_{static_cast<int>(count)}, type_{rankmesh::mpi::native(type)} {
    if (count > largest) [[unlikely]]
      derive(count, size_of(type), largest);
  }
  ~CountedType() {
    if (owned_) [[unlikely]]
      free();
  }
  CountedType(const CountedType&) = delete;
  CountedType& operator=(const CountedType&) = delete;

  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }

 private:
  void derive(std::int64_t count, std::size_t bytes_each, std::int64_t largest);
  void free() noexcept;

  int count_;
  MPI_Datatype type_;
  bool owned_ = false;
};

}  // namespace rankmesh::mpi
