// SPDX-License-Identifier: BSD-3-Clause
// A mesh whose collectives use Gloo: prints which transport carries what, and a sum.
//
//     mpirun -n 4 ./gloo_sums dp=2,tp=2
#include <cstdio>
#include <vector>

#include <rankmesh/rankmesh.hpp>

#include "gloo_transport.hpp"

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    rankmesh::MeshOptions options;
    options.transports = {{"gloo", open_gloo}};
    options.routes = "*.*=gloo";  // what Gloo does not carry follows the default rules
    rankmesh::Mesh mesh{MPI_COMM_WORLD, argc > 1 ? argv[1] : "tp=auto", options};
    auto& tp = mesh["tp"];

    if (mesh.rank() == rankmesh::Rank{0})
      for (const auto operation :
           {rankmesh::Operation::all_reduce, rankmesh::Operation::reduce_scatter})
        std::printf("%s\n", tp.explain(operation, 1 << 20).to_string().c_str());

    std::vector<double> values(1 << 17, 1.0);
    tp.all_reduce(values);                          // over Gloo
    tp.all_reduce_async(std::span{values}).wait();  // over MPI
    std::printf("rank %lld: %g\n", static_cast<long long>(mesh.rank().value()), values[0]);
    mesh.close();
  });
}
