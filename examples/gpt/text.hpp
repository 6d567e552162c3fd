// SPDX-License-Identifier: BSD-3-Clause
// The text: its bytes are the tokens.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "config.hpp"
#include "parameter.hpp"

/// The tokens of a microbatch on this rank: those of all members of tp, for each of them the one
/// that follows.
struct Tokens {
  std::vector<int> inputs, targets;
};

class Text {
 public:
  /// Reads a file, or all files of a folder in the order of their names.
  explicit Text(const std::string& path, std::int64_t context) : context_{context} {
    std::vector<std::filesystem::path> files{path};
    if (std::filesystem::is_directory(path)) {
      files.clear();
      for (const auto& entry : std::filesystem::directory_iterator{path})
        if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
      std::ranges::sort(files);
    }
    for (const auto& file : files) {
      std::ifstream in{file, std::ios::binary};
      bytes_.append(std::istreambuf_iterator<char>{in}, {});
    }
    if (std::ssize(bytes_) <= context)
      throw rankmesh::UsageError{path + " has only " + std::to_string(bytes_.size()) + " bytes",
                                 "choose another file or folder with --text"};
  }

  /// Returns the tokens of a microbatch. The sequences of a step begin at irregular places, which
  /// depend only on the numbers of the step and of the sequence.
  [[nodiscard]] Tokens microbatch(std::int64_t step, std::int64_t number,
                                  const Share& share) const {
    Tokens tokens;
    for (std::int64_t s = 0; s < share.sequences; ++s) {
      const std::int64_t sequence = share.batch.begin() + number * share.sequences + s;
      const auto places = static_cast<std::uint64_t>(std::ssize(bytes_) - context_);
      const auto begin = mixed(static_cast<std::uint64_t>(step << 20 | sequence)) % places;
      for (std::int64_t t = 0; t < share.tokens; ++t) {
        const std::size_t place = begin + static_cast<std::size_t>(share.first + t);
        tokens.inputs.push_back(static_cast<unsigned char>(bytes_[place]));
        tokens.targets.push_back(static_cast<unsigned char>(bytes_[place + 1]));
      }
    }
    return tokens;
  }

 private:
  std::string bytes_;
  std::int64_t context_;
};
