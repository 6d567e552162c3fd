// SPDX-License-Identifier: BSD-3-Clause
// The order in which a stage of the pipeline runs its passes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

/// The forward or backward pass of a microbatch through a chunk of layers of this stage.
struct Pass {
  bool is_forward;
  std::int64_t chunk, microbatch;
};

/// Returns the passes of a stage. With one chunk, this is the schedule 1F1B: a warm-up with as many
/// forward passes as there are later stages, then a forward and a backward pass in turns, and at
/// the end the remaining backward passes. A stage so keeps the activations of at most `stages`
/// microbatches.
///
/// With several chunks, it is the interleaved schedule (Narayanan et al. 2021, section 2.2): chunk
/// c of stage s has the layers c x stages + s, so a microbatch passes through all stages `chunks`
/// times. The wait at the beginning and at the end is then that of a thinner stage. The number of
/// microbatches must be a multiple of the number of stages.
inline std::vector<Pass> schedule(std::int64_t stage, std::int64_t stages, std::int64_t chunks,
                                  std::int64_t microbatches) {
  const std::int64_t all = chunks * microbatches;
  const std::int64_t warm_up =
      chunks == 1 ? std::min(stages - 1 - stage, all)
                  : std::min((stages - 1 - stage) * 2 + (chunks - 1) * stages, all);
  // The n-th pass in a direction: `stages` microbatches pass through one chunk, then through the
  // next one.
  const auto nth = [&](bool is_forward, std::int64_t n) {
    if (chunks == 1) return Pass{is_forward, 0, n};
    const std::int64_t chunk = n / stages % chunks;
    return Pass{is_forward, is_forward ? chunk : chunks - 1 - chunk,
                n / (stages * chunks) * stages + n % stages};
  };
  std::vector<Pass> passes;
  for (std::int64_t n = 0; n < warm_up; ++n) passes.push_back(nth(true, n));
  for (std::int64_t n = 0; n + warm_up < all; ++n) {
    passes.push_back(nth(true, n + warm_up));
    passes.push_back(nth(false, n));
  }
  for (std::int64_t n = all - warm_up; n < all; ++n) passes.push_back(nth(false, n));
  return passes;
}
