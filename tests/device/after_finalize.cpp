// SPDX-License-Identifier: BSD-3-Clause
// A mesh with devices that outlives MPI: it ends its NCCL communicators by itself, and its later
// close says why not.
#include <cstdio>
#include <optional>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::optional<rankmesh::Mesh> mesh;
  rankmesh::MeshOptions options;
  options.names["tp"].duplicates = {"side"};
  mesh.emplace(MPI_COMM_WORLD, "tp=auto", options);
  const rankmesh::device::DeviceBuffer<float> value{4};
  mesh->duplicate("tp", "side").all_reduce(value.span(), mesh->duplicate("tp", "side").stream());
  MPI_Finalize();
  int errors = 0;
  try {
    mesh->close();
    ++errors;
  } catch (const rankmesh::UsageError& error) {
    if (error.message().find("MPI_Finalize") == std::string::npos) ++errors;
  }
  mesh.reset();
  if (errors == 0) std::puts("fine");
  return errors;
}
