// SPDX-License-Identifier: BSD-3-Clause
// A mesh, its groups and an environment that outlive MPI_Finalize must not call MPI any more. Nor
// must a mesh use a communicator that the program has freed, when it is destroyed.
#include <link.h>

#include <cstdio>
#include <optional>
#include <string_view>

#include "rankmesh/rankmesh.hpp"

namespace {

rankmesh::MeshOptions checked() {
  rankmesh::MeshOptions options;
  options.check = true;
  return options;
}

// The option `check` makes groups without shared memory tell each other that they are left.
void destroy_after_a_communicator() {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "tp=auto", checked()};
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const auto adopted = mesh.adopt(comm, "adopted");
  adopted->barrier();
  MPI_Comm_free(&comm);
}

// The components of Open MPI, whose threads may still call them when MPI_Finalize has ended.
int loaded_components() {
  int count = 0;
  const auto add = [](dl_phdr_info* object, std::size_t, void* sum) {
    const std::string_view path = object->dlpi_name;
    if (path.find("/mca_") != std::string_view::npos) ++*static_cast<int*>(sum);
    return 0;
  };
  ::dl_iterate_phdr(add, &count);
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  { const rankmesh::mpi::Environment environment; }
  const int components = loaded_components();
  destroy_after_a_communicator();
  std::optional<rankmesh::Mesh> mesh;
  mesh.emplace(MPI_COMM_WORLD, "tp=auto", checked());
  std::vector<rankmesh::Rank> everyone;
  for (std::int64_t r = 0; r < mesh->size(); ++r) everyone.emplace_back(r);
  const auto group = mesh->new_group(everyone);
  const auto adopted = mesh->adopt(MPI_COMM_WORLD, "adopted");
  adopted->barrier();
  MPI_Finalize();
  int errors = loaded_components() < components ? 1 : 0;
  // In shared memory, a call needs no MPI and may work.
  std::vector<int> values(mesh->size() > 1 ? 300'000 : 1, 1);
  try {
    (*mesh)["tp"].all_reduce(values);
  } catch (const rankmesh::Error&) {  // NOLINT: it may also be a PeerError
  }
  if (mesh->size() > 1) try {
      (*mesh)["tp"].send_recv(values, std::vector<int>(values.size()), rankmesh::next,
                              rankmesh::prev);
      ++errors;
    } catch (const rankmesh::UsageError&) {
    }
  try {
    mesh->close();
    ++errors;
  } catch (const rankmesh::UsageError& error) {
    if (error.message().find("MPI_Finalize") == std::string::npos) ++errors;
  }
  try {
    const rankmesh::mpi::Environment environment;
    ++errors;
  } catch (const rankmesh::UsageError&) {
  }
  mesh.reset();
  if (errors == 0) std::puts("fine");
  return errors;
}
