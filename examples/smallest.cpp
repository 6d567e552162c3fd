// SPDX-License-Identifier: BSD-3-Clause
// Two pipeline stages of two tensor-parallel ranks each: sums over tp, then passes the sum on.
#include <cstdio>
#include <exception>
#include <vector>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};  // initialises and finalises MPI
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "pp=2,tp=2"};  // the last dimension varies fastest
    std::vector<float> values(1024, 1.0F);
    mesh["tp"].all_reduce(values);  // blocks; over the two ranks of this stage
    if (!mesh["pp"].is_last()) mesh["pp"].send(values, rankmesh::next);
    if (!mesh["pp"].is_first()) mesh["pp"].recv(values, rankmesh::prev);
    if (rank == 3) std::printf("rank 3 received %g from the first stage\n", values[0]);
    mesh.close();
  } catch (const rankmesh::SpecError& error) {  // on every rank, so MPI can be finalised
    if (rank == 0) std::fprintf(stderr, "smallest: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {  // perhaps on this rank alone, so end the whole job
    std::fprintf(stderr, "smallest: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
