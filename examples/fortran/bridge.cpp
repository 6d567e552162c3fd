// SPDX-License-Identifier: BSD-3-Clause
// The C++ part of a Fortran or C program. It builds a mesh on the communicator of the caller.
#include <cstdio>
#include <exception>
#include <optional>
#include <span>

#include "rankmesh/rankmesh.hpp"

namespace {

// Fortran has no C++ objects, so this file keeps the mesh.
std::optional<rankmesh::Mesh> model;

// Exceptions must not leave C++, so they become a status.
template <class Action>
int guarded(Action&& action) {
  try {
    action();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "model: %s\n", error.what());
    return 1;
  }
}

}  // namespace

extern "C" int model_begin(MPI_Fint comm) {
  return guarded([&] { model.emplace(MPI_Comm_f2c(comm), "dp=auto"); });
}

extern "C" int model_average(double* values, int count) {
  return guarded([&] {
    model.value()["dp"].all_reduce(std::span{values, static_cast<std::size_t>(count)},
                                   rankmesh::ReduceOp::avg);
  });
}

extern "C" int model_end() {
  return guarded([] {
    model.value().close();
    model.reset();
  });
}
