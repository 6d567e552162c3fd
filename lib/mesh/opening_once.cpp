// SPDX-License-Identifier: BSD-3-Clause
#include "detail/opening_once.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh::detail {
namespace {

struct Openings {
  std::mutex mutex;
  std::vector<MPI_Comm> comms;
};

Openings& openings() {
  static Openings all;
  return all;
}

int delete_number(MPI_Comm, int, void* number, void*) {
  delete static_cast<std::uint64_t*>(number);
  return MPI_SUCCESS;
}

// The communicator keeps the number, as an attribute.
std::uint64_t count_opening(MPI_Comm comm) {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    mpi::check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_number, &created, nullptr),
               "MPI_Comm_create_keyval");
    return created;
  }();
  void* number = nullptr;
  int is_there = 0;
  mpi::check(MPI_Comm_get_attr(comm, key, static_cast<void*>(&number), &is_there),
             "MPI_Comm_get_attr");
  if (is_there != 0) return ++*static_cast<std::uint64_t*>(number);
  auto first = std::make_unique<std::uint64_t>(1);
  mpi::check(MPI_Comm_set_attr(comm, key, first.get()), "MPI_Comm_set_attr");
  return *first.release();
}

}  // namespace

OpeningOnce::OpeningOnce(MPI_Comm comm) : comm_{comm} {
  const std::lock_guard lock{openings().mutex};
  if (std::ranges::find(openings().comms, comm) != openings().comms.end())
    throw UsageError{"two threads open a mesh on the same communicator at the same time",
                     "open one after the other, or give each thread its own MPI_Comm_dup of the "
                     "communicator"};
  number_ = count_opening(comm);
  openings().comms.push_back(comm);
}

OpeningOnce::~OpeningOnce() {
  const std::lock_guard lock{openings().mutex};
  openings().comms.erase(std::ranges::find(openings().comms, comm_));
}

}  // namespace rankmesh::detail
