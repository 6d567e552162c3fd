// SPDX-License-Identifier: BSD-3-Clause
// Trains a small GPT on the text of licences, or on any file, in every parallel form.
//
//   mpirun -n 8 gpt pp=2,dp=2,tp=2
#include <cmath>
#include <cstdio>
#include <vector>

#include "options.hpp"
#include "trainer.hpp"

namespace {

std::vector<double> train(MPI_Comm world, const std::string& layout, const Options& options) {
  Mesh mesh{world, complete(layout)};
  std::vector<double> losses;
  {
    Groups groups{mesh};
    Trainer trainer{options.config, groups, options.text};
    while (trainer.steps() < options.config.steps) {
      losses.push_back(trainer.step());
      if (mesh.rank() == 0 && mesh.size() > 0)
        std::printf("%s step %ld loss %.10f norm %.4f\n", layout.c_str(), (long)trainer.steps(),
                    losses.back(), trainer.norm());
    }
  }
  mesh.close();
  return losses;
}

}  // namespace

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [&] {
    const Options options{argc, argv};
    train(MPI_COMM_WORLD, options.layout, options);
  });
}
