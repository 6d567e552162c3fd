// SPDX-License-Identifier: BSD-3-Clause
// What saving and loading a checkpoint have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agree.hpp"
#include "checkpoint_layout.hpp"
#include "rankmesh/exchange/checkpoint.hpp"

namespace rankmesh::exchange::detail {

/// Runs a step on all ranks, and throws on all of them if it throws an Error on one. Collective
/// over the group; blocks.
/// @param activity  What the ranks do, for messages.
/// @param arguments  What must be the same on all ranks, for messages. The step may add to it.
void on_all(GroupCoordinator& group, const std::string& activity, const std::function<void()>& step,
            const std::vector<std::string>& arguments = {});

/// The elements of some tensors on the ranks that write and read them.
class PieceMemory {
 public:
  /// @param self  This rank in the group.
  PieceMemory(const TensorInFile& tensor, std::int64_t self, std::int64_t ranks);

  [[nodiscard]] const TensorPlacement& place() const { return place_; }
  [[nodiscard]] Buffer buffer() {
    return {memory_.data(), place_.local_count(Rank{self_}), place_.type()};
  }
  /// Calls use(piece, memory) for the pieces of this rank.
  template <class Use>
  void for_each(Use&& use) {
    std::byte* next = memory_.data();
    for (std::int64_t piece = 0; piece < tensor_->pieces; ++piece) {
      if (tensor_->writer(piece, ranks_) != self_) continue;
      const auto bytes = static_cast<std::size_t>(tensor_->bytes_of(piece));
      use(piece, std::span{next, bytes});
      next += bytes;
    }
  }

 private:
  const TensorInFile* tensor_;
  std::int64_t self_, ranks_;
  TensorPlacement place_;
  std::vector<std::byte> memory_;
};

/// Tensors that move between files and places.
struct MovingBatch {
  std::vector<PieceMemory> memory{};
  std::vector<TensorTransfer> moves{};
  std::vector<TensorSource> sources{};
  std::vector<TensorTarget> targets{};

  /// Throws the UsageErrors of Redistribution::start() on this rank.
  void check(Rank self) const;
  /// Moves the elements. Collective over the group; blocks.
  /// @param memory_of_rank  See CheckpointOptions.
  void run(GroupCoordinator& group, std::int64_t memory_of_rank);
};

/// Divides tensors into batches of at most `bytes` bytes, or of one tensor, and calls
/// use(first, last) for each of them. Tensors without elements belong to no batch.
template <class Use>
void for_each_batch(const std::vector<const TensorInFile*>& tensors, std::int64_t bytes,
                    Use&& use) {
  for (std::size_t first = 0; first < tensors.size();) {
    std::size_t last = first;
    std::int64_t sum = 0;
    do sum += tensors[last++]->bytes;
    while (last < tensors.size() && sum + tensors[last]->bytes <= bytes);
    use(first, last);
    first = last;
  }
}

}  // namespace rankmesh::exchange::detail
