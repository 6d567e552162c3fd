// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 sends its settings, a map, to all ranks, which answer with a string each.
#include <cstdio>
#include <map>
#include <string>

#include <rankmesh/exchange/objects.hpp>
#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
    std::map<std::string, std::string> settings;
    if (mesh["dp"].is_first()) settings = {{"model", "tiny"}, {"step", "7"}};
    rankmesh::exchange::broadcast_object(mesh["dp"], settings, 0);
    const std::string answer = settings["model"] + std::string(mesh.rank().to_size(), '!');
    for (const std::string& text : rankmesh::exchange::gather_objects(mesh["dp"], answer, 0))
      std::printf("rank 0 received %s\n", text.c_str());
    mesh.close();
  });
}
