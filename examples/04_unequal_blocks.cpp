// SPDX-License-Identifier: BSD-3-Clause
// Ten numbers are divided over any number of ranks, squared there, and gathered again.
#include <cstdio>
#include <vector>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
    auto& dp = mesh["dp"];
    std::vector<int> all;
    if (dp.is_first()) all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};  // only the root has them
    std::vector<int> mine = dp.scatter_v(all, rankmesh::Blocks::even(10, dp), 0);
    for (int& number : mine) number *= number;
    const rankmesh::Slice part{10, dp};  // which of them are mine
    std::printf("rank %d has %zu numbers from %d\n", dp.rank().to_int(), mine.size(),
                static_cast<int>(part.begin()));
    const auto squares = dp.gather_v(mine, 0);
    if (dp.is_first()) std::printf("the last square is %d\n", squares.values.back());
    mesh.close();
  });
}
