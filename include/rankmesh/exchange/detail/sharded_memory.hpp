// SPDX-License-Identifier: BSD-3-Clause
// The part of a ShardedBuffer that does not depend on the element type.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/transfer/placement.hpp"

namespace rankmesh::exchange {

struct ShardedBufferOptions {
  /// The size of a full bucket, in bytes of the whole tensors. A larger tensor is a bucket of its
  /// own. The default is 25 MiB, as in Bucket.
  std::int64_t bytes = std::int64_t{25} << 20;
  /// If true, every member always has memory for all whole tensors. If false, a member has memory
  /// for the whole tensors of only 1 + `prefetch` buckets at a time.
  bool keep_whole = false;
  /// The number of buckets that gather() gathers in advance. It is also the number of buckets that
  /// may be reduced while the program computes the next bucket.
  int prefetch = 1;
  ReduceOp op = ReduceOp::avg;  ///< How reduce() combines the values of the members.
  StreamRef stream{};           ///< The stream on which the program uses device memory.
};

namespace detail {

/// Implements ShardedBuffer. The comments of ShardedBuffer describe all functions.
class RANKMESH_API ShardedMemory {
 public:
  ShardedMemory(GroupCoordinator& group, std::vector<std::int64_t> sizes, DataType type,
                MemoryKind kind, const ShardedBufferOptions& options);
  /// Creates memory with the same buckets and the same stream as `like`.
  ShardedMemory(const ShardedMemory& like, DataType type, const ShardedBufferOptions& options);
  ~ShardedMemory();
  ShardedMemory(ShardedMemory&&) noexcept;
  ShardedMemory& operator=(ShardedMemory&&) noexcept;

  [[nodiscard]] std::int64_t tensors() const noexcept;
  [[nodiscard]] std::int64_t buckets() const noexcept;
  [[nodiscard]] std::int64_t bytes() const noexcept;
  void load(std::int64_t tensor, const ConstBuffer& values);
  [[nodiscard]] Buffer mine(std::int64_t bucket);
  void changed();
  [[nodiscard]] Buffer gather(std::int64_t tensor);
  void release(std::int64_t tensor);
  [[nodiscard]] Buffer local(std::int64_t tensor);
  void reduce(std::int64_t tensor);
  void wait();
  /// Which member has which elements of a tensor, and those of this member.
  struct OwnPart {
    TensorPlacement place;
    Buffer memory;
  };
  /// Returns this member's parts of all tensors.
  [[nodiscard]] std::vector<OwnPart> parts();

 private:
  struct State;
  /// @throws UsageError if this object was moved; ClosedError if the group was destroyed.
  [[nodiscard]] State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace detail
}  // namespace rankmesh::exchange
