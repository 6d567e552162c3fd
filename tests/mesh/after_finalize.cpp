// SPDX-License-Identifier: BSD-3-Clause
// A mesh, its groups and an environment that outlive MPI_Finalize must not call MPI any more.
#include <cstdio>
#include <optional>

#include "rankmesh/rankmesh.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::optional<rankmesh::Mesh> mesh;
  mesh.emplace(MPI_COMM_WORLD, "tp=auto");
  std::vector<rankmesh::Rank> everyone;
  for (std::int64_t r = 0; r < mesh->size(); ++r) everyone.emplace_back(r);
  const auto group = mesh->new_group(everyone);
  MPI_Finalize();
  int errors = 0;
  // In shared memory, a call needs no MPI and may work.
  std::vector<int> values(mesh->size() > 1 ? 300'000 : 1, 1);
  try {
    (*mesh)["tp"].all_reduce(values);
  } catch (const rankmesh::Error&) {  // NOLINT: it may also be a PeerError
  }
  if (mesh->size() > 1) try {
      (*mesh)["tp"].send_recv(values, rankmesh::next, std::vector<int>(values.size()),
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
