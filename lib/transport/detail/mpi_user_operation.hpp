// SPDX-License-Identifier: BSD-3-Clause
// A user's reduction as an MPI_Op.
#pragma once

#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/user_reduction.hpp"

namespace rankmesh {

/// Creates an MPI_Op and a datatype for one operation, and frees them in the destructor, after the
/// operation. MPI passes only the datatype to the function of an MPI_Op, so the datatype has the
/// reduction as an attribute.
class MpiUserOperation {
 public:
  explicit MpiUserOperation(UserReduction& reduction);
  ~MpiUserOperation();
  MpiUserOperation(const MpiUserOperation&) = delete;
  MpiUserOperation& operator=(const MpiUserOperation&) = delete;

  [[nodiscard]] MPI_Datatype type() const noexcept { return type_; }
  [[nodiscard]] MPI_Op op() const noexcept { return op_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL;
};

/// Reports an exception of the function on this rank; call it once the operation is complete.
/// @throws UsageError if the function threw an exception, which is nested in the error.
void check_user(const UserReduction& reduction);

}  // namespace rankmesh
