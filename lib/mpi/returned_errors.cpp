// SPDX-License-Identifier: BSD-3-Clause
#include "detail/returned_errors.hpp"

#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {

bool has_one_thread() noexcept {
  int level = MPI_THREAD_MULTIPLE;
  MPI_Query_thread(&level);
  return level != MPI_THREAD_MULTIPLE;
}

bool returns_errors(MPI_Comm comm) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  check(MPI_Comm_get_errhandler(comm, &handler), "MPI_Comm_get_errhandler");
  const bool returns = handler == MPI_ERRORS_RETURN;
  check(MPI_Errhandler_free(&handler), "MPI_Errhandler_free");
  return returns;
}

ReturnedErrors::ReturnedErrors(MPI_Comm comm) {
  static const bool is_possible = has_one_thread();
  if (!is_possible) return;
  check(MPI_Comm_get_errhandler(comm, &before_), "MPI_Comm_get_errhandler");
  if (before_ != MPI_ERRORS_RETURN) {
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    comm_ = comm;
  }
}

ReturnedErrors::~ReturnedErrors() {
  if (comm_ != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm_, before_);
  if (before_ != MPI_ERRHANDLER_NULL) MPI_Errhandler_free(&before_);
}

}  // namespace rankmesh::mpi
