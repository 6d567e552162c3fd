// SPDX-License-Identifier: BSD-3-Clause
// Translates data types, reductions and large counts into their counterparts in MPI.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// Returns the MPI datatype that moves elements of this type. Elements of types that MPI does not
/// have are moved as integers of the same size.
RANKMESH_API MPI_Datatype native(DataType type);
/// Returns the MPI datatype for reductions of this type.
/// @throws UnsupportedError if the type is a float of 16 or 8 bits, because MPI cannot reduce these
/// types.
RANKMESH_API MPI_Datatype native_for_reduction(DataType type);
/// Returns MPI's operation for this reduction. MPI has no average, so the result for `avg` is
/// MPI_SUM, and the caller divides the sum. The results of MPI's operations for NaN and for
/// overflow differ between MPI libraries. MpiTransport therefore uses operations of its own for
/// some types (docs/arithmetic.md).
RANKMESH_API MPI_Op native(ReduceOp op);

/// Describes a message of `count` elements by an int and an MPI datatype. MPI counts are ints. A
/// message of more than `largest` elements is therefore sent with a derived datatype. The derived
/// datatype has exactly the same size and extent as the elements, so there are no gaps between
/// consecutive blocks.
class RANKMESH_API CountedType {
 public:
  /// Describes `count` elements. Creates a derived datatype if there are more than `largest`.
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

  /// Returns the count to pass to MPI.
  [[nodiscard]] int count() const noexcept { return count_; }
  /// Returns the datatype to pass to MPI.
  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }

 private:
  void derive(std::int64_t count, std::size_t bytes_each, std::int64_t largest);
  void free() noexcept;

  int count_;
  MPI_Datatype type_;
  bool owned_ = false;
};

}  // namespace rankmesh::mpi
