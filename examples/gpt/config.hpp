// SPDX-License-Identifier: BSD-3-Clause
// The sizes of the model and of its training.
#pragma once

#include <cstdint>
#include <string>

#include "groups.hpp"

struct Config {
  // The model.
  std::int64_t layers = 4;
  std::int64_t width = 48;        ///< elements of the vector of a token
  std::int64_t heads = 6;         ///< of attention
  std::int64_t context = 48;      ///< tokens of a sequence
  std::int64_t experts = 0;       ///< in place of each MLP; 0: no experts
  std::int64_t vocabulary = 256;  ///< The tokens are bytes.
  // The training.
  std::int64_t batch = 12;      ///< sequences of a step, on all ranks together
  std::int64_t microbatch = 1;  ///< sequences that pass through the pipeline together
  std::int64_t chunks = 1;      ///< virtual stages of each stage: more than 1 is interleaved
  std::int64_t zero = 0;        ///< the stage of ZeRO: 0 to 3
  std::int64_t steps = 50;
  double rate = 0.01;  ///< of the optimizer

  [[nodiscard]] std::int64_t hidden() const { return 4 * width; }  ///< of the MLP
  [[nodiscard]] std::int64_t head() const { return width / heads; }
};

/// What a rank computes of one microbatch.
struct Share {
  std::int64_t sequences;  ///< of the microbatch
  std::int64_t tokens;     ///< of each sequence: those of this member of cp
  std::int64_t first;      ///< the place of the first of these tokens in its sequence
  std::int64_t rows;       ///< sequences x tokens: all members of tp have the same ones
  std::int64_t own_rows;   ///< of them, those of this member of tp (sequence parallelism)
  std::int64_t microbatches;
  Slice batch;  ///< the sequences of this rank in the batch

  Share(const Config& config, const Groups& groups)
      : sequences{config.microbatch},
        tokens{config.context / groups.cp.size()},
        first{tokens * groups.cp.rank_in_group().value()},
        rows{sequences * tokens},
        own_rows{rows / groups.tp.size()},
        microbatches{config.batch / (groups.dp.size() * groups.ep.size() * sequences)},
        batch{Slice::of(config.batch, groups.dp.size() * groups.ep.size(),
                        groups.dp.rank_in_group().value() * groups.ep.size() +
                            groups.ep.rank_in_group().value())} {}
};

/// Throws UsageError unless the sizes can be divided over the mesh.
inline void check(const Config& config, const Groups& groups) {
  const auto divides = [](const char* by, std::int64_t divisor, const char* what, std::int64_t n) {
    if (divisor < 1 || n % divisor != 0)
      throw rankmesh::UsageError{std::string{by} + " (" + std::to_string(divisor) +
                                     ") does not divide " + what + " (" + std::to_string(n) + ")",
                                 "choose another mesh, or other options"};
  };
  divides("heads", config.heads, "the width", config.width);
  divides("tp", groups.tp.size(), "the heads", config.heads);
  divides("cp", groups.cp.size(), "the context", config.context);
  divides("dp x ep x microbatch", groups.dp.size() * groups.ep.size() * config.microbatch,
          "the batch", config.batch);
  divides("tp", groups.tp.size(), "the tokens of a microbatch",
          config.microbatch * config.context / groups.cp.size());
  divides("ep", groups.ep.size(), "the experts", config.experts);
  divides("pp x chunks", groups.pp.size() * config.chunks, "the layers", config.layers);
  if (config.chunks > 1 && groups.pp.size() == 1)
    throw rankmesh::UsageError{"one stage has no interleaved schedule", "use --chunks 1"};
  if (config.chunks > 1)
    divides("pp", groups.pp.size(), "the microbatches of an interleaved schedule",
            Share{config, groups}.microbatches);
  if (config.layers == 0)
    throw rankmesh::UsageError{"the model has no layers", "use --layers 1 or more"};
  if (config.zero > 3)
    throw rankmesh::UsageError{"ZeRO has no stage " + std::to_string(config.zero),
                               "use --zero with 0 to 3"};
  if (config.experts == 1)
    throw rankmesh::UsageError{"each token goes to two experts", "use --experts 2 or more"};
}
