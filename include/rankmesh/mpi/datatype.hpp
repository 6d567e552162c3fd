// rankmesh's element types and reductions in MPI's terms, for counts of any size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// The MPI datatype that moves elements of this type; types that MPI does not know travel as plain
/// bytes.
RANKMESH_API MPI_Datatype native(DataType type);
/// The same, for arithmetic on the elements.
/// @throws UnsupportedError for half and 8-bit floating types.
RANKMESH_API MPI_Datatype native_for_reduction(DataType type);
/// MPI's reduction; MPI has no average, so `avg` gives MPI_SUM and the caller divides.
RANKMESH_API MPI_Op native(ReduceOp op);

/// `count` elements as (int, datatype), whatever the count: above `largest` elements a derived type
/// of exactly that size stands for them all. The extent is count x element size, so blocks follow
/// each other without gaps.
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
