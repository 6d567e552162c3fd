// SPDX-License-Identifier: BSD-3-Clause
// The program examples/gpt in the namespace GPT_NAMESPACE, so that two forms of it fit into one
// executable. What it includes from elsewhere is included first, outside of the namespace.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numbers>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <rankmesh/exchange/bucket.hpp>
#include <rankmesh/exchange/expert_dispatcher.hpp>
#include <rankmesh/exchange/sharded_buffer.hpp>
#include <rankmesh/rankmesh.hpp>

#include "gpt_speed.hpp"

namespace GPT_NAMESPACE {

#include "../examples/gpt/matrix_loops.cpp"
#include "../examples/gpt/options.hpp"
#include "../examples/gpt/trainer.hpp"

namespace {

class Begun : public Training {
 public:
  explicit Begun(const Options& options)
      : mesh_{MPI_COMM_WORLD, complete(options.layout)},
        groups_{mesh_},
        trainer_{std::make_unique<Trainer>(options.config, groups_, options.text)} {}
  double run(std::int64_t steps) override {
    double loss = 0;
    for (std::int64_t step = 0; step < steps; ++step) loss = trainer_->step();
    return loss;
  }
  void close() override {
    trainer_.reset();
    mesh_.close();
  }

 private:
  Mesh mesh_;
  Groups groups_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace

std::unique_ptr<Training> begin(int argc, char** argv) {
  return std::make_unique<Begun>(Options{argc, argv});
}

}  // namespace GPT_NAMESPACE
