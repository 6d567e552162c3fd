// SPDX-License-Identifier: BSD-3-Clause
// Reduces many small buffers in a few collectives.
#pragma once

#include <cstddef>
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
  /// The size of a full collective, in bytes. The default is 25 MiB, as in torch's DDP.
  std::int64_t bytes = std::int64_t{25} << 20;
  ReduceOp op = ReduceOp::avg;
  StreamRef stream{};  ///< The stream on which the program uses device buffers.
};

/// Collects buffers, such as gradients, and reduces them over a group in collectives of about equal
/// size. The collectives run while the program continues:
///
///     Bucket bucket{mesh["dp"]};
///     for (layer : backwards(layers)) { layer.backward(); bucket.add(layer.gradient); }
///     bucket.wait();    // all gradients are averages now
///
/// All members must add buffers of the same counts, types and kinds of memory in the same order. A
/// collective is issued by the call of add() that fills it. So all ranks issue the collective at
/// the same place among their other operations. A round ends with wait(). In the first round, the
/// members compare the buffers of each collective. In later rounds, every member must add the same
/// buffers as in the first round.
///
/// Cost: one asynchronous all_reduce per `bytes` bytes. A change of the type or of the kind of
/// memory also begins a new all_reduce. In the first round, each all_reduce is preceded by a
/// blocking all_reduce of 16 bytes. Buffers are copied into the memory of the collective, and the
/// results are copied back. A buffer that is alone in its collective is reduced in place and not
/// copied. The memory of the collectives is reused in the next round.
///
/// On host memory, the operations make progress in Mesh::progress() (see Work). On device memory,
/// the copies run on `BucketOptions::stream`, and the all_reduce runs on the group's own stream.
/// The program's stream can therefore compute at the same time. Thread safety: the rules of the
/// group apply.
class RANKMESH_API Bucket {
 public:
  /// Creates a bucket. Local.
  /// @throws UsageError if `bytes` is less than 1.
  explicit Bucket(GroupCoordinator& group, BucketOptions options = {});

  /// Adds a buffer. After wait(), the buffer holds the result. Until then, the memory must stay
  /// valid, and the program must not use it. A call may issue up to two collectives, so add() is
  /// collective over the group.
  /// @throws MismatchError on all members if the members add different buffers in the first round;
  /// the error lists them.
  /// @throws UsageError if a later round differs from the first round.
  template <WritableMemory M>
  void add(M&& values) {
    static_assert(rankmesh::detail::is_borrowed<M>,
                  "a temporary container ends before its result is there");
    add_buffer(buffer_of(values));
  }
  void add_buffer(const Buffer& buffer);
  /// Issues a collective with the buffers that were added since the last collective. Collective
  /// over the group.
  void flush();
  /// Ends the round: issues the remaining buffers and copies the results back. On host memory,
  /// blocks until the collectives are complete. On device memory, makes the stream wait for the
  /// collectives. The next add() begins a new round.
  /// @throws UsageError if the round differs from the first round; TimeoutError if the mesh's
  /// timeout passes.
  void wait();

  /// Returns the number of collectives that were issued in this round.
  [[nodiscard]] std::int64_t issued() const noexcept {
    return static_cast<std::int64_t>(issued_.size());
  }

 private:
  struct Issued {
    std::vector<Buffer> parts;  // the results are copied here; empty if reduced in place
    Work work;
  };
  [[nodiscard]] bool fits(const Buffer& buffer) const;
  const std::shared_ptr<Tensor>& flat(std::size_t collective, const Buffer& like);
  void agree(const Hash128& contents);
  [[noreturn]] void throw_different_contents(std::size_t number);

  GroupCoordinator& group_;
  BucketOptions options_;
  std::vector<Buffer> added_;  // not issued yet
  std::int64_t added_count_ = 0;
  std::vector<Issued> issued_;
  // The memory of each collective of a round; null for a collective of a single buffer.
  std::vector<std::shared_ptr<Tensor>> flat_;
  std::vector<Hash128> first_round_;  // the contents of each collective
  bool is_first_round_ = true;
};

}  // namespace rankmesh::exchange
