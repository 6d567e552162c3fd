// SPDX-License-Identifier: BSD-3-Clause
// A language model that is small enough to be checked: integers, so that every layout computes the
// same tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <rankmesh/rankmesh.hpp>

constexpr std::int64_t cache_width = 50;

/// A request of a user.
struct Request {
  int id = 0;
  std::vector<int> prompt;
  int tokens = 0;  ///< The number of tokens to generate.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, prompt, tokens);
  }
};

/// A request in progress, as one rank of a tensor-parallel group has it.
struct Sequence {
  int id = 0;
  int remaining = 0;       ///< The number of tokens that are to be generated.
  std::vector<int> text;   ///< The tokens that were generated.
  std::vector<int> cache;  ///< This rank's slice of the numbers that the model remembers.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, remaining, text, cache);
  }
};

/// Feeds one token to a sequence, and returns the sum over a slice of its cache.
inline std::int64_t feed(Sequence& sequence, int token, const rankmesh::Slice& slice) {
  std::int64_t sum = 0;
  for (std::int64_t w = slice.begin(); w < slice.end(); ++w) {
    int& value = sequence.cache[static_cast<std::size_t>(w - slice.begin())];
    value = (31 * value + token + static_cast<int>(w)) % 1009;
    sum += value;
  }
  return sum;
}
/// Returns the token that follows when the sum over the whole cache is `sum`.
inline int next_token(std::int64_t sum) { return static_cast<int>(sum % 97); }

/// A token to compute in a step.
struct Row {
  Sequence* sequence = nullptr;
  int token = 0;
};

/// The model on one rank. The cache is divided over tp. The replicas of dp share their experts, so
/// all replicas must run the same steps.
class Model {
 public:
  Model(rankmesh::GroupCoordinator& tp, rankmesh::GroupCoordinator& dp)
      : tp_{tp}, dp_{dp}, slice_{cache_width, tp} {}

  [[nodiscard]] const rankmesh::Slice& slice() const { return slice_; }
  /// Runs one step, and returns the sum of each row. Collective over tp and dp; blocks.
  /// @param padded  The number of rows of all replicas; at least rows.size(). The rows that are
  ///                missing are dummies.
  std::vector<std::int64_t> run(const std::vector<Row>& rows, std::int64_t padded) {
    std::vector<std::int64_t> sums(static_cast<std::size_t>(padded));
    std::array<int, 4> load{};  // tokens per expert
    for (std::size_t r = 0; r < rows.size(); ++r) {
      sums[r] = feed(*rows[r].sequence, rows[r].token, slice_);
      ++load[static_cast<std::size_t>(rows[r].token) % load.size()];
    }
    tp_.all_reduce(sums);
    dp_.all_reduce(load);  // instead of the exchange of tokens between experts
    return sums;
  }

 private:
  rankmesh::GroupCoordinator& tp_;
  rankmesh::GroupCoordinator& dp_;
  rankmesh::Slice slice_;
};

/// Answers a request in one process without communication.
inline std::vector<int> serial_answer(const Request& request) {
  Sequence sequence{request.id, 0, {}, std::vector<int>(cache_width)};
  const auto whole = rankmesh::Slice::of(cache_width, 1, 0);
  std::int64_t sum = 0;
  for (const int token : request.prompt) sum = feed(sequence, token, whole);
  while (static_cast<int>(sequence.text.size()) < request.tokens) {
    sequence.text.push_back(next_token(sum));
    sum = feed(sequence, sequence.text.back(), whole);
  }
  return sequence.text;
}
