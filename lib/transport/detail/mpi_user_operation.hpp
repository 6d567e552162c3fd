// A user's reduction in MPI's terms.
#pragma once

#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/user_reduction.hpp"

namespace rankmesh {

/// An MPI_Op and a datatype of the element's bytes, made for one operation and freed with this
/// object, which outlives it. MPI gives an operation's function nothing but the datatype: that
/// carries the reduction as an attribute.
class MpiUserOperation {
 public:
  explicit MpiUserOperation(UserReduction& reduction);
  ~MpiUserOperation();
  MpiUserOperation(const MpiUserOperation&) = delete;
  MpiUserOperation& operator=(const MpiUserOperation&) = delete;

  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }
  [[nodiscard]] MPI_Op op() const noexcept { return op_; }
  /// Once the operation is complete: @throws UsageError with the function's exception nested, where
  /// it threw on this rank.
  void check() const;

 private:
  UserReduction& reduction_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace rankmesh
