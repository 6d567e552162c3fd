// SPDX-License-Identifier: BSD-3-Clause
// write_numbers(TEXT, FILE): trains examples/gpt on one process, and writes for against_llm_c.c:
//
// - 7 ints: context, vocabulary, layers, heads, width, sequences of a step, steps
// - doubles: the initial weights; then for each step its loss and its gradients. Weights and
//   gradients are in the order of llm.c: tensor after tensor, each one for all layers
// - after the loss of each step, its tokens and those that follow them, as ints
#pragma once

#include <fstream>
#include <vector>

#include "../../examples/gpt/trainer.hpp"

namespace numbers {

// The weights or the gradients of each part of the model: the parts of the layers, then the
// positions and the last norm, then the embedding.
using Parts = std::vector<std::vector<In>>;

// llm.c's order: the embedding, the positions; each parameter of attention and of the MLP for all
// layers; the last norm.
inline std::vector<Real> in_order(const Parts& parts, std::size_t layers) {
  std::vector<Real> all;
  const auto append = [&](In values) { all.insert(all.end(), values.begin(), values.end()); };
  const std::vector<In>&ends = parts[2 * layers], &embedding = parts[2 * layers + 1];
  append(embedding[0]);
  append(ends[0]);
  for (std::size_t part = 0; part < 2; ++part)  // attention and MLP have six parameters each
    for (std::size_t p = 0; p < 6; ++p)
      for (std::size_t layer = 0; layer < layers; ++layer) append(parts[2 * layer + part][p]);
  append(ends[1]);
  append(ends[2]);
  return all;
}

template <class Of>
std::vector<Real> of_all_parts(Model& model, std::size_t layers, Of&& of) {
  Parts parts;
  model.for_each_store([&](Store& store) {
    for (std::int64_t part = 0; part < std::ssize(store.parts()); ++part) {
      parts.emplace_back();
      for (const auto values : of(store, part)) parts.back().push_back(values);
    }
  });
  return in_order(parts, layers);
}

template <class T>
void write(std::ofstream& file, const std::vector<T>& values) {
  file.write(reinterpret_cast<const char*>(values.data()),
             std::ssize(values) * std::int64_t{sizeof(T)});
}

inline void write_numbers(const char* text, const char* path) {
  Config config{.layers = 3, .width = 24, .heads = 4, .context = 20, .batch = 4};
  config.steps = 10;
  Mesh mesh{MPI_COMM_SELF, complete("dp=1")};
  {
    Groups groups{mesh};
    Trainer trainer{config, groups, text};
    const auto layers = static_cast<std::size_t>(config.layers);
    std::ofstream file{path, std::ios::binary};
    std::vector<int> header;
    for (const std::int64_t n : {config.context, config.vocabulary, config.layers, config.heads,
                                 config.width, config.batch, config.steps})
      header.push_back(static_cast<int>(n));
    write(file, header);
    write(file, of_all_parts(trainer.model(), layers,
                             [](Store& store, auto part) { return store.weights(part); }));
    const Text tokens{text, config.context};
    const Share share{config, groups};
    for (std::int64_t step = 0; step < config.steps; ++step) {
      const double loss = trainer.loss_and_gradients();
      write(file, std::vector<Real>{loss});
      write(file, of_all_parts(trainer.model(), layers,
                               [](Store& store, auto part) { return store.gradients(part); }));
      Tokens all;
      for (std::int64_t m = 0; m < share.microbatches; ++m) {
        const Tokens some = tokens.microbatch(step, m, share);
        all.inputs.insert(all.inputs.end(), some.inputs.begin(), some.inputs.end());
        all.targets.insert(all.targets.end(), some.targets.begin(), some.targets.end());
      }
      write(file, all.inputs);
      write(file, all.targets);
      trainer.update();
    }
  }
  mesh.close();
}

}  // namespace numbers
