// SPDX-License-Identifier: BSD-3-Clause
// A program that uses the model library too: its pure part, what stands on a group, and a helper.
#include <cstdio>
#include <vector>

#include <rankmesh/models.hpp>

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  bool right = rankmesh::StageLayers::even(4, 2).run(1).first == 2;
  std::vector<float> gradient(3, static_cast<float>(mesh.rank().value()));
  rankmesh::exchange::Bucket bucket{mesh["dp"], {.op = rankmesh::ReduceOp::sum}};
  bucket.add(gradient);
  bucket.wait();
  right = right && gradient.back() == 1;  // of two ranks
  rankmesh::check_equal(mesh, gradient, {"dp"});
  if (mesh.rank() == rankmesh::Rank{0})
    std::printf("rankmesh %s: %s\n", rankmesh::version_string(), right ? "right" : "wrong");
  mesh.close();
  return right ? 0 : 1;
}
