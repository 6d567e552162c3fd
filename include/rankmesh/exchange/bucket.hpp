// SPDX-License-Identifier: BSD-3-Clause
// Reduces many small buffers with few collectives.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/exchange/tensor_dict.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange {

struct BucketOptions {
  /// The size of one collective. The default is 25 MiB, as in torch's DDP.
  std::int64_t bytes = std::int64_t{25} << 20;
  ReduceOp op = ReduceOp::avg;
  StreamRef stream{};  ///< Writes the device buffers before, and reads them afterwards.
};

/// Collects buffers, such as gradients, and reduces them over a group in collectives of about equal
/// size, which run while the program continues:
///
///     Bucket bucket{mesh["dp"]};
///     for (layer : backwards(layers)) { layer.backward(); bucket.add(layer.gradient); }
///     bucket.wait();    // all gradients are averages now
///
/// All members must add the same buffers (count, type, kind of memory) in the same order. The add()
/// that fills a collective issues it, so all ranks issue it at the same place among their other
/// operations. In the first round, which ends with the first wait(), the members compare what each
/// collective holds. Later rounds must be the same as the first.
///
/// Cost: one asynchronous all_reduce per `bytes` bytes, and another all_reduce when the type or the
/// kind of memory changes. In the first round, each of these costs an additional blocking
/// all_reduce of 16 bytes. Buffers are copied in and out; only a buffer that fills a collective
/// alone is not copied. The memory for the copies is kept for the next round.
///
/// On host memory, the operations make progress in Mesh::progress(). On device memory, the copies
/// run on `BucketOptions::stream` and the all_reduce runs on the group's own stream, so the stream
/// of the program can compute at the same time. Thread safety: the rules of the group apply.
class RANKMESH_API Bucket {
 public:
  /// Creates a bucket. Local. @throws UsageError  `bytes` is below 1.
  explicit Bucket(GroupCoordinator& group, BucketOptions options = {});

  /// Adds a buffer. After wait() the buffer holds the result. Until then the memory must stay valid
  /// and the program must not use it. May issue one or two collectives, so it is collective over
  /// the group.
  /// @throws MismatchError  In the first round, the members added different buffers. All members
  ///                        throw it.
  /// @throws UsageError  A later round differs from the first.
  template <WritableMemory M>
  void add(M&& values) {
    static_assert(rankmesh::detail::is_borrowed<M>,
                  "a temporary container ends before its result is there");
    add_buffer(buffer_of(values));
  }
  void add_buffer(const Buffer& buffer);
  /// Issues the buffers that were added since the last collective. Collective over the group.
  void flush();
  /// Issues the remaining buffers and copies the results back. On host memory, it blocks until the
  /// collectives are complete; on device memory, the stream waits for them. The next add() begins
  /// another round.
  /// @throws UsageError  The round differs from the first. @throws TimeoutError
  void wait();

  /// Returns the number of collectives that were issued in this round.
  [[nodiscard]] std::int64_t issued() const noexcept {
    return static_cast<std::int64_t>(issued_.size());
  }

 private:
  struct Issued {
    std::vector<Buffer> parts;  // the results are copied here; empty if they are in place
    Work work;
  };
  [[nodiscard]] bool fits(const Buffer& buffer) const;
  const std::shared_ptr<Tensor>& flat(std::size_t collective, const Buffer& like);
  void agree(const Hash128& contents);

  GroupCoordinator& group_;
  BucketOptions options_;
  std::vector<Buffer> added_;  // not issued yet
  std::int64_t added_count_ = 0;
  std::vector<Issued> issued_;
  // The memory of each collective of a round; null if it is a single buffer.
  std::vector<std::shared_ptr<Tensor>> flat_;
  std::vector<Hash128> first_round_;  // the contents of each collective
  bool is_first_round_ = true;
};

}  // namespace rankmesh::exchange
