// The C++ side of a Fortran (or C) program: it receives the caller's communicator and builds a mesh
// on it.
#include <cstdio>
#include <optional>
#include <span>

#include "rankmesh/rankmesh.hpp"

namespace {

// The library keeps the mesh, since its callers have no objects.
std::optional<rankmesh::Mesh> model;

// No exception may cross into Fortran.
template <class Action>
int guarded(Action&& action) {
  try {
    action();
    return 0;
  } catch (const rankmesh::Error& error) {
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
    (*model)["dp"].all_reduce(std::span{values, static_cast<std::size_t>(count)},
                              rankmesh::ReduceOp::avg);
  });
}

extern "C" int model_end() {
  return guarded([] {
    model->close();
    model.reset();
  });
}
