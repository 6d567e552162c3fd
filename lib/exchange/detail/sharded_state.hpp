// SPDX-License-Identifier: BSD-3-Clause
// The private parts of a ShardedBuffer: its buckets, their memory and their collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/exchange/detail/sharded_memory.hpp"
#include "rankmesh/exchange/tensor_dict.hpp"
#include "rankmesh/group/detail/group_life.hpp"
#include "rankmesh/group/work.hpp"

namespace rankmesh::exchange::detail {

/// Neighbouring tensors, of which each member owns an equal part.
struct ShardBucket {
  /// What the memory of the whole tensors holds.
  enum class Whole : std::uint8_t {
    nothing,
    gathered,  // the values of all members; if `work` is set, they have not arrived yet
    local,     // this member's own values
    reducing,  // this member's own values, while their reduce_scatter is in flight
  };

  std::size_t first_tensor = 0;
  std::vector<std::int64_t> begins;  // the first element of each tensor
  std::int64_t count = 0;            // the end of the last tensor
  std::int64_t share = 0;            // the elements of each member, including padding

  std::shared_ptr<Tensor> mine;     // this member's part; null if it is a part of `whole`
  std::shared_ptr<Tensor> whole;    // null if the bucket has no such memory now
  std::shared_ptr<Tensor> reduced;  // receives the result if it cannot be received in place
  Whole contents = Whole::nothing;
  std::optional<Work> work;      // the operation in flight
  std::vector<bool> is_used;     // for each tensor: gather() was called, and release() was not
  std::vector<bool> is_reduced;  // for each tensor: reduce() was called in this round
  /// The first bytes of this member's part as they were when mine() returned it while the whole
  /// tensors were gathered. Empty again after changed().
  std::vector<std::byte> before;

  /// Returns the number of tensors.
  [[nodiscard]] std::size_t tensors() const { return begins.size(); }
  /// Returns whether the bucket holds gathered values that the program does not use.
  [[nodiscard]] bool is_idle() const;
};

/// Combines neighbouring tensors in buckets of up to `bytes` bytes. A tensor that does not fit
/// begins a new bucket. Tensors and shares begin at multiples of 16 bytes, because vector
/// instructions, kernels and NCCL are fastest with this alignment.
std::vector<ShardBucket> divided(const std::vector<std::int64_t>& sizes, DataType type,
                                 std::int64_t bytes, std::int64_t members);

/// Sets memory to zero; on device memory, on the stream.
void zero(const Buffer& memory, StreamRef stream);

/// Which bucket loses its memory, and which bucket is gathered in advance, depends only on the
/// order of the calls. Therefore all members issue the same collectives.
struct ShardedMemory::State {
  GroupCoordinator& group;
  rankmesh::detail::GroupLife life;
  DataType type;
  MemoryKind kind;
  ShardedBufferOptions options;
  std::vector<std::int64_t> sizes;  // of the tensors
  std::vector<ShardBucket> buckets{};
  std::vector<std::size_t> bucket_of{};   // for each tensor
  std::vector<TensorPlacement> places{};  // of the tensors; see all_places()
  // Memory of 1 + prefetch buckets, and of more if the program needs more at the same time.
  std::vector<std::shared_ptr<Tensor>> spare{};
  std::int64_t slots = 0;
  std::int64_t slot_count = 0;         // the elements of each
  std::deque<std::size_t> reducing{};  // the buckets whose reduce_scatter is in flight
  std::int64_t place = 0, step = 1;    // the bucket that gather() used last, and the direction

  /// Throws a UsageError.
  [[noreturn]] void refuse(const std::string& what, const char* hint) const;
  /// Returns the bucket of a tensor.
  /// @throws UsageError if there is no such tensor.
  ShardBucket& bucket_with(std::int64_t tensor);
  /// Returns which member has which elements of each tensor.
  [[nodiscard]] const std::vector<TensorPlacement>& all_places();
  /// Returns the elements of a tensor that a member has: the first of them, and their number.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> elements_of(std::int64_t tensor,
                                                                  std::int64_t member);
  /// Returns the elements of a tensor in the whole memory of its bucket.
  [[nodiscard]] Buffer part(std::int64_t tensor);
  /// Returns this member's part of a bucket. Does not wait.
  [[nodiscard]] Buffer share_of(const ShardBucket& bucket) const;
  /// Returns the whole memory of a bucket, with padding.
  [[nodiscard]] Buffer whole_of(const ShardBucket& bucket) const;

  /// Returns the number of the first element of this member's part.
  [[nodiscard]] std::int64_t first_of(const ShardBucket& bucket) const;
  /// Allocates a number of elements.
  /// @throws UsageError if there is too little host memory.
  [[nodiscard]] std::shared_ptr<Tensor> allocated(std::int64_t count) const;
  /// Allocates the memory that is kept.
  void allocate();
  /// Stores the first bytes of this member's part of a gathered bucket. Host memory only.
  void remember(ShardBucket& bucket);
  /// @throws UsageError if the part of a bucket has changed since remember().
  void require_unchanged(const ShardBucket& bucket);
  /// Makes the memory of a tensor's bucket hold local values: zeros, unless it already does.
  /// @throws UsageError if the tensor has been reduced and other tensors of the bucket have not.
  void begin_local(std::int64_t tensor);

  // Defined in sharded_buckets.cpp:
  /// Waits for the operation that a bucket has in flight.
  void finish(ShardBucket& bucket);
  /// Gives a bucket memory for its whole tensors, unless it has some. If all memory is in use,
  /// allocates more if the bucket is urgent, and returns false otherwise.
  bool provide(ShardBucket& bucket, bool is_urgent);
  /// Issues the all_gather of a bucket. The bucket has memory.
  void start_gather(ShardBucket& bucket);
  /// Issues the reduce_scatter of a bucket, which holds local values.
  void start_reduce(std::size_t number);
  /// Remembers that the program uses a bucket, and in which direction it goes.
  void move_to(std::int64_t bucket);
  /// Issues the all_gathers of the buckets that the program probably uses next.
  void prefetch();
  /// Takes the whole memory of a bucket that has no operation in flight.
  void take(ShardBucket& bucket);
  /// Returns the bucket that loses its memory first, or null.
  ShardBucket* farthest_idle();
};

}  // namespace rankmesh::exchange::detail
