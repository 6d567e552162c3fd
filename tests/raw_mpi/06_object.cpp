// SPDX-License-Identifier: BSD-3-Clause
// examples/06_object.cpp without rankmesh.
#include <mpi.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // The map as text: each name and each value ends with a zero byte.
  std::map<std::string, std::string> settings;
  std::string packed;
  if (rank == 0) {
    settings = {{"model", "tiny"}, {"step", "7"}};
    for (const auto& [name, value] : settings) packed += name + '\0' + value + '\0';
  }
  int length = static_cast<int>(packed.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  packed.resize(static_cast<std::size_t>(length));
  MPI_Bcast(packed.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (std::size_t i = 0; i < packed.size();) {
    const std::string name = packed.c_str() + i;
    i += name.size() + 1;
    const std::string value = packed.c_str() + i;
    i += value.size() + 1;
    settings[name] = value;
  }
  const std::string answer = settings["model"] + std::string(static_cast<std::size_t>(rank), '!');
  const int mine = static_cast<int>(answer.size());
  std::vector<int> counts(static_cast<std::size_t>(size));
  MPI_Gather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<int> displacements;
  int total = 0;
  for (const int count : counts) {
    displacements.push_back(total);
    total += count;
  }
  std::string texts(static_cast<std::size_t>(total), ' ');
  MPI_Gatherv(answer.data(), mine, MPI_CHAR, texts.data(), counts.data(), displacements.data(),
              MPI_CHAR, 0, MPI_COMM_WORLD);
  for (std::size_t k = 0; rank == 0 && k < counts.size(); ++k)
    std::printf("rank 0 received %.*s\n", counts[k], texts.c_str() + displacements[k]);
  MPI_Finalize();
}
