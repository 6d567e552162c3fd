// rankmesh's element types and reductions in MPI's terms, for counts of any size.
#pragma once

#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// The MPI datatype that moves elements of this type; types that MPI does not know travel as plain bytes.
RANKMESH_API MPI_Datatype native(DataType type);
/// The same, for arithmetic on the elements.
/// @throws UnsupportedError for half and 8-bit floating types.
RANKMESH_API MPI_Datatype native_for_reduction(DataType type);
/// MPI's reduction; MPI has no average, so `avg` gives MPI_SUM and the caller divides.
RANKMESH_API MPI_Op native(ReduceOp op);

/// `count` elements as (int, datatype), whatever the count: above `largest` elements a derived type of
/// exactly that size stands for them all. The extent is count x element size, so blocks follow each other
/// without gaps.
class RANKMESH_API CountedType {
 public:
  CountedType(std::int64_t count, DataType type, std::int64_t largest);
  ~CountedType();
  CountedType(const CountedType&) = delete;
  CountedType& operator=(const CountedType&) = delete;

  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }

 private:
  int count_;
  MPI_Datatype type_;
  bool owned_ = false;
};

}  // namespace rankmesh::mpi
