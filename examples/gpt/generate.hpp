// SPDX-License-Identifier: BSD-3-Clause
// Lets a model write.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "trainer.hpp"

/// Reads a checkpoint on this rank alone, and continues a text by `count` bytes. Bytes that
/// are not ASCII are returned as `?`.
inline std::string generate(Config config, const std::string& text_of_training,
                            const std::string& checkpoint, std::string text, std::int64_t count) {
  config.batch = config.microbatch = config.chunks = 1;
  config.zero = 0;
  Mesh mesh{MPI_COMM_SELF, complete("dp=1")};
  {
    Groups groups{mesh};
    Trainer trainer{config, groups, text_of_training};
    trainer.load(checkpoint);
    for (std::int64_t n = 0; n < count; ++n) {
      // The model sees the last bytes. Tokens behind them change nothing, because no token sees a
      // later one.
      const auto seen = std::min(std::ssize(text), config.context);
      Tokens tokens{std::vector<int>(config.context), {}};
      for (std::int64_t i = 0; i < seen; ++i)
        tokens.inputs[i] = static_cast<unsigned char>(text[text.size() - seen + i]);
      const Values scores = trainer.model().scores(tokens);
      const In next = In{scores}.subspan((seen - 1) * config.vocabulary, config.vocabulary);

      // Chooses a byte by its probability, where higher scores count more than in training.
      const Real most = std::ranges::max(next);
      Values sums;
      for (const Real score : next)
        sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp((score - most) / 0.7));
      const double point = static_cast<double>(mixed(n + 1) >> 11) * 0x1p-53 * sums.back();
      text += static_cast<char>(std::ranges::upper_bound(sums, point) - sums.begin());
    }
  }
  mesh.close();
  for (char& byte : text)  // terminals take some bytes as commands
    if (byte != '\n' && (byte < ' ' || byte > '~')) byte = '?';
  return text;
}
