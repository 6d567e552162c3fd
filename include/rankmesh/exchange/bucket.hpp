// Many small buffers reduced by few collectives.
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
  std::int64_t bytes = std::int64_t{25} << 20;  ///< of one collective; 25 MiB, as in torch's DDP
  ReduceOp op = ReduceOp::avg;
  StreamRef stream{};  ///< on which device buffers were written and are used afterwards
};

/// Gathers buffers, gradients above all, and reduces them over a group in collectives of about
/// equal size, which run while the program goes on:
///
///     Bucket bucket{mesh["dp"]};
///     for (layer : backwards(layers)) { layer.backward(); bucket.add(layer.gradient); }
///     bucket.wait();    // all gradients are averages now
///
/// The order is fixed: all members add the same buffers (count, type, kind of memory) in the same
/// order, and a collective is issued by the add() that fills it, never by what happens to be ready
/// on one rank, so that all ranks issue it at the same place among their other operations. In the
/// first round (up to the first wait()) the members compare what each collective holds; later
/// rounds must repeat the first.
///
/// Cost: a copy of each buffer in and out (none for one that is alone in its collective), one
/// asynchronous all_reduce per `bytes` bytes, or where type or memory changes; in the first round a
/// blocking all_reduce of 16 bytes for each. Memory: as much as all buffers that are copied, kept
/// for the next round.
///
/// Host memory makes progress in Mesh::progress(), as every Work. Device memory: copies are on the
/// stream, the all_reduce on the group's own, which overlaps with what the stream does next. One
/// thread.
class RANKMESH_API Bucket {
 public:
  /// Local. @throws UsageError for a size below 1.
  explicit Bucket(GroupCoordinator& group, BucketOptions options = {});

  /// The result is there after wait(), until when the memory must live and be left alone. May issue
  /// one or two collectives.
  /// @throws MismatchError, on all members, where they added other buffers in the first round;
  /// UsageError where a later round differs from the first.
  template <WritableMemory M>
  void add(M&& values) {
    static_assert(rankmesh::detail::is_borrowed<M>,
                  "a temporary container ends before its result is there");
    add_buffer(buffer_of(values));
  }
  void add_buffer(const Buffer& buffer);
  /// Issues what is gathered, full or not.
  void flush();
  /// Issues the rest and puts the results in their places. Host memory: returns when they are
  /// there. Device memory: the stream waits for them. The next add() begins another round.
  /// @throws UsageError where the round differs from the first; TimeoutError.
  void wait();

  /// Collectives that were issued in this round.
  [[nodiscard]] std::int64_t issued() const noexcept {
    return static_cast<std::int64_t>(flying_.size());
  }

 private:
  struct Flying {
    std::vector<Buffer> parts;  // where the results go; empty: they are in place
    Work work;
  };
  [[nodiscard]] bool fits(const Buffer& buffer) const;
  const std::shared_ptr<Tensor>& flat(std::size_t collective, const Buffer& like);
  void agree(const Hash128& contents);

  GroupCoordinator& group_;
  BucketOptions options_;
  std::vector<Buffer> gathered_;  // not issued yet
  std::int64_t gathered_count_ = 0;
  std::vector<Flying> flying_;
  std::vector<std::shared_ptr<Tensor>>
      flat_;                          // of each collective of a round; null where it is one buffer
  std::vector<Hash128> first_round_;  // what each collective held
  bool is_first_round_ = true;
};

}  // namespace rankmesh::exchange
