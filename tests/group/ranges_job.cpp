// SPDX-License-Identifier: BSD-3-Clause
// ranges_job: a job of two ranks that makes calls of several kinds, which tests/group/ranges looks
// at through a double of NVTX.
#include <cstdio>
#include <vector>

#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [](mpi::Environment&) {
    Mesh mesh{MPI_COMM_WORLD, "dp=1,tp=2"};
    std::vector<float> values(4, 1), others(4);
    const int self = static_cast<int>(mesh.rank().value());
    mesh["tp"].all_reduce(values);
    mesh["dp"].barrier();
    // A message that both ranks send before they receive: the ranges change nothing in MPI.
    if (self == 0) mesh["tp"].send(values, RankInGroup{1});
    if (self == 1) mesh["tp"].recv(others, RankInGroup{0});
    Work work = mesh["tp"].all_reduce_async(values);
    mesh["tp"].barrier();
    work.wait();
    {
      NcclGroup batch{mesh};
      Work in_batch = mesh["tp"].all_reduce_async(values);
      batch.end();
      in_batch.wait();
    }
    try {
      mesh["tp"].broadcast(values, RankInGroup{7});
    } catch (const UsageError&) {
    }
    mesh.close();
    if (values != std::vector<float>(4, 8)) return 1;
    return 0;
  });
}
