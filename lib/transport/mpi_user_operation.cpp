// SPDX-License-Identifier: BSD-3-Clause
#include "detail/mpi_user_operation.hpp"

#include <string>

#include "detail/call_errors.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/environment.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/progress.hpp"

namespace rankmesh {
namespace {

// The key of the attribute that holds the reduction. The process has one, which is never freed.
int reduction_key() {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    mpi::check(
        MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &created, nullptr),
        "MPI_Type_create_keyval");
    return created;
  }();
  return key;
}

void combine(void* left, void* right, int* count, MPI_Datatype* type) {
  void* reduction = nullptr;
  int found = 0;
  MPI_Type_get_attr(*type, reduction_key(), &reduction, &found);
  const detail::InFunction mark;
  if (found != 0)
    static_cast<UserReduction*>(reduction)->combine(static_cast<const std::byte*>(left),
                                                    static_cast<std::byte*>(right), *count);
}

}  // namespace

MpiUserOperation::MpiUserOperation(UserReduction& reduction) {
  mpi::check(MPI_Type_contiguous(static_cast<int>(reduction.element_bytes()), MPI_BYTE, &type_),
             "MPI_Type_contiguous");
  mpi::check(MPI_Type_commit(&type_), "MPI_Type_commit");
  mpi::check(MPI_Type_set_attr(type_, reduction_key(), &reduction), "MPI_Type_set_attr");
  mpi::check(MPI_Op_create(combine, reduction.commutative() == Commutative::yes ? 1 : 0, &op_),
             "MPI_Op_create");
}

MpiUserOperation::~MpiUserOperation() {
  if (!mpi::is_active()) return;
  if (op_ != MPI_OP_NULL) MPI_Op_free(&op_);
  if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
}

void check_user(const UserReduction& reduction) {
  if (reduction.failure() == nullptr) return;
  try {
    std::rethrow_exception(reduction.failure());
  } catch (...) {
    const detail::Reasons reasons = detail::current_reasons();
    std::throw_with_nested(detail::FailedReduction{
        "a reduction function threw on this rank: " + reasons.message,
        reasons.hint_and(
            "fix the function; the values are invalid on all ranks, and the group is broken")});
  }
}

}  // namespace rankmesh
