// SPDX-License-Identifier: BSD-3-Clause
// Ten numbers are divided over any number of ranks, squared there, and gathered again.
#include <iostream>
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
    std::cout << "rank " << dp.rank() << " has numbers " << part.begin() << " to " << part.end()
              << " (excluded)\n";
    const auto squares = dp.gather_v(mine, 0);
    if (dp.is_first()) std::cout << "the last square is " << squares.values.back() << '\n';
    mesh.close();
  });
}
