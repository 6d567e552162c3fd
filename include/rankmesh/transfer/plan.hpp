// SPDX-License-Identifier: BSD-3-Clause
// Who sends which elements to whom when tensors move from one place to another.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/transfer/placement.hpp"

namespace rankmesh {

/// One tensor that moves.
struct TensorTransfer {
  TensorPlacement from;  ///< The place of the elements before the transfer.
  /// The place after the transfer. It has the same shape and no sums. Its type may differ; then the
  /// elements are converted.
  TensorPlacement to;
  std::string name{};  ///< The name that reports and errors use; may be empty.
  /// A second place of the same elements, or nothing: `from` on other ranks (TensorPlacement::on).
  /// The source of a rank then holds its elements of `from`, followed by those of `copy`.
  std::optional<TensorPlacement> copy{};
};

/// Reports elements that no rank has any more, because all ranks that had them are lost.
class RANKMESH_API LostElements : public Error {
 public:
  /// Creates an error that says which element was on which ranks.
  LostElements(std::string message, std::string hint, std::string tensor,
               std::vector<std::int64_t> index, std::vector<Rank> holders)
      : Error{std::move(message), std::move(hint)},
        tensor_{std::move(tensor)},
        index_{std::move(index)},
        holders_{std::move(holders)} {}
  /// Returns the name of the tensor.
  [[nodiscard]] const std::string& tensor() const noexcept { return tensor_; }
  /// Returns the first such element: one index per axis.
  [[nodiscard]] const std::vector<std::int64_t>& index() const noexcept { return index_; }
  /// Returns the ranks that had it, in ascending order.
  [[nodiscard]] const std::vector<Rank>& holders() const noexcept { return holders_; }

 private:
  std::string tensor_;
  std::vector<std::int64_t> index_;
  std::vector<Rank> holders_;
};

/// The steps of a transfer. A step begins on a rank when the rank has received all messages of the
/// previous step.
enum class TransferStep : std::uint8_t {
  /// The sender reads its memory at the place `from`.
  first,
  /// The sender reads its memory at the place `to`, because it passes on what it received in the
  /// first step. See TransferOptions::fan_out.
  forward,
};

/// Returns the type of the elements in the messages of a step: the smaller of the two types.
/// Therefore the sender converts if the target has the smaller type; otherwise the receiver
/// converts. Partial sums have the type of the source, and forwarded sums have the type of the
/// target.
[[nodiscard]] RANKMESH_API DataType message_type(const TensorTransfer& tensor, TransferStep step);

/// Repeats a block: `count` blocks whose first elements are these strides apart, in elements.
struct TransferLoop {
  std::int64_t count = 1;          ///< The number of repetitions.
  std::int64_t source_stride = 0;  ///< The distance in the memory of the sender.
  std::int64_t target_stride = 0;  ///< The distance in the memory of the receiver.
  /// Returns whether all fields are equal.
  friend bool operator==(const TransferLoop&, const TransferLoop&) = default;
};

/// Elements that are contiguous in both memories, repeated by nested loops. All numbers are
/// elements, not bytes.
struct TransferBlock {
  std::int64_t source = 0;  ///< The offset of the first element in the memory of the sender.
  std::int64_t target = 0;  ///< The offset of the first element in the memory of the receiver.
  std::int64_t length = 0;  ///< The number of contiguous elements.
  std::vector<TransferLoop> loops{};  ///< The outermost loop first.
  /// Returns the number of elements.
  [[nodiscard]] std::int64_t element_count() const;
  /// Calls `take(source, target, length)` for each contiguous run, in the order of the loops.
  template <class Take>
  void for_each(Take&& take) const;
};

/// Elements of one tensor that a rank sends to one peer, receives from one peer, or copies (then
/// the peer is the rank itself). Sender and receiver compute equal lists of blocks. The message
/// consists of these blocks, packed one after the other.
struct TransferMessage {
  Rank peer = 0;                            ///< The other rank.
  TransferStep step = TransferStep::first;  ///< The step in which it moves.
  /// Whether the receiver adds these elements to its target instead of storing them. This is true
  /// for partial sums: the receiver stores one message for each element, and adds all other
  /// messages. It adds them in the order of its list, copies first.
  bool is_added = false;
  std::int64_t elements = 0;            ///< The number of elements.
  std::vector<TransferBlock> blocks{};  ///< Where they lie.
};

/// What one rank does for one tensor. Each list is in ascending order of steps; in a step, messages
/// to be stored come before those to be added, and each of the two kinds is in ascending order of
/// peers. A list has at most one message for each combination of `step`, `is_added` and `peer`.
struct TensorTransferOfRank {
  std::vector<TransferMessage> copies;    ///< own elements, all in the first step
  std::vector<TransferMessage> receives;  ///< what other ranks send to this rank
  std::vector<TransferMessage> sends;     ///< what this rank sends to other ranks
};

/// The whole part of one rank. Tensors that move between the same places share their messages, so
/// this object is small even for many tensors.
class RANKMESH_API TransferOfRank {
 public:
  /// Returns the number of tensors.
  [[nodiscard]] std::size_t size() const { return kind_.size(); }
  /// Returns what the rank does for a tensor. `tensor` is a position in the list of tensors.
  [[nodiscard]] const TensorTransferOfRank& operator[](std::size_t tensor) const {
    return kinds_[kind_[tensor]];
  }
  /// Returns the number of different pairs of places.
  [[nodiscard]] std::size_t kind_count() const { return kinds_.size(); }
  /// Returns the number of a tensor's pair of places, from 0 to kind_count() - 1. Tensors with the
  /// same number have equal messages.
  [[nodiscard]] std::size_t kind(std::size_t tensor) const { return kind_[tensor]; }

 private:
  friend class TransferPlan;
  std::span<const std::uint32_t> kind_;
  std::vector<TensorTransferOfRank> kinds_;
};

/// What a rank exchanges with one peer, over all tensors.
struct TransferPeer {
  Rank peer = 0;                    ///< The other rank.
  std::int64_t sent_bytes = 0;      ///< What the rank sends to the peer.
  std::int64_t received_bytes = 0;  ///< What the rank receives from the peer.
};

/// The bytes of all tensors that one rank sends to another rank, or copies if both are the same
/// rank.
struct TransferFlow {
  Rank sender = 0;                   ///< The rank that sends.
  Rank receiver = 0;                 ///< The rank that receives.
  std::int64_t bytes = 0;            ///< The number of bytes.
  std::int64_t forwarded_bytes = 0;  ///< How many of them move in TransferStep::forward.
};

/// The bytes of a transfer. In messages, elements have the type message_type(); in copies, they
/// have the type of the source.
struct TransferVolume {
  std::int64_t moved_bytes = 0;           ///< sent by all ranks to other ranks
  std::int64_t copied_bytes = 0;          ///< copied by all ranks inside their own memory
  std::int64_t most_sent_bytes = 0;       ///< the most that one rank sends
  Rank most_sending = 0;                  ///< the lowest rank that sends so much
  std::int64_t most_forwarded_bytes = 0;  ///< the most that one rank forwards
  Rank most_forwarding = 0;               ///< the lowest rank that forwards so much
  std::int64_t most_received_bytes = 0;   ///< the most that one rank receives
  Rank most_receiving = 0;                ///< the lowest rank that receives so much
  std::int64_t between_nodes_bytes = 0;   ///< sent to ranks on other nodes; 0 without a machine
  /// A lower bound of `moved_bytes`: the bytes that all ranks need and do not have. An element with
  /// partial sums on k ranks costs k or k - 1 messages to one rank that needs it, and one more
  /// message to each other rank that needs it.
  std::int64_t least_moved_bytes = 0;
  /// A lower bound of `most_sent_bytes`. For elements that the same ranks have, it is the number of
  /// their bytes that are needed elsewhere, divided by the number of these ranks.
  std::int64_t least_most_sent_bytes = 0;
  /// A lower bound of `between_nodes_bytes`: every byte that a node needs and no rank on it has
  /// enters the node once. Partial sums are left out.
  std::int64_t least_between_nodes_bytes = 0;
};

/// The choices of a plan.
struct TransferOptions {
  /// With a machine: elements that several ranks of a node need, and that no rank of the node has,
  /// enter the node once. Each of these ranks receives a part, and forwards it to the others.
  bool fan_out = true;
  /// Ranks that are lost: they send nothing, whatever they have had. Give them numbers that no rank
  /// of the group has; TensorPlacement::on changes the numbers of a place.
  std::vector<Rank> lost{};
};

/// Says which rank sends which elements to which rank. Every rank computes the same plan from the
/// same arguments, without communication. Each rank receives exactly those elements that it needs
/// and does not have. Among the ranks that have an element, the sender is one on the receiver's
/// node if there is one. Apart from this, the elements are divided among the senders so that their
/// loads are equal.
///
/// A plan is immutable and cheap to copy, and several threads can use it. All functions are local.
class RANKMESH_API TransferPlan {
 public:
  /// Returns the tensors.
  [[nodiscard]] const std::vector<TensorTransfer>& tensors() const;
  /// Returns the number of ranks that the world must have at least: the highest rank that is not
  /// lost, plus 1.
  [[nodiscard]] std::int64_t world_size() const;
  /// Computes the part of one rank. The result refers to this plan, and must not be used after the
  /// last copy of the plan has been destroyed.
  [[nodiscard]] TransferOfRank of(Rank rank) const;
  /// Returns the peers of a rank in ascending order.
  [[nodiscard]] std::vector<TransferPeer> peers(Rank rank) const;
  /// Returns what each rank sends to each other rank and copies, in ascending order of senders and
  /// then of receivers. Pairs of ranks that exchange nothing are left out.
  [[nodiscard]] std::vector<TransferFlow> flows() const;
  /// Returns the bytes of all ranks.
  [[nodiscard]] TransferVolume volume() const;
  /// Returns the bytes of all ranks, from the result of flows().
  [[nodiscard]] TransferVolume volume(std::span<const TransferFlow> flows) const;
  /// Returns a hash of everything that the plan depends on. It is the same on every machine. Ranks
  /// with equal digests have the same plan.
  [[nodiscard]] Hash128 digest() const;
  /// Explains one element: who has it before and after the transfer, and who sends it to whom.
  /// @param tensor  the position in the list of tensors.
  /// @param index  one index per axis.
  /// @throws UsageError if the tensor or the element does not exist.
  [[nodiscard]] std::string explain(std::size_t tensor, std::span<const std::int64_t> index) const;

  /// What a plan is made of. It is not part of the public interface.
  struct Data;
  /// Creates a plan from its parts. It is not part of the public interface.
  explicit TransferPlan(std::shared_ptr<const Data> data) : data_{std::move(data)} {}

 private:
  std::shared_ptr<const Data> data_;
};

/// Plans the move of one tensor.
/// @param machine  the machine, or null. Rank r is in slot r.
/// @throws UsageError if the shapes differ, if the types differ and are not both floats, if an
/// element of the target has no source, if the target has sums or a lost rank, or if the machine
/// has fewer slots than the plan has ranks.
/// @throws LostElements if all ranks that had an element of the target are lost.
RANKMESH_API TransferPlan plan_transfer(const TensorPlacement& from, const TensorPlacement& to,
                                        const Machine* machine = nullptr,
                                        const TransferOptions& options = {});
/// Plans the move of a list of tensors. Tensors whose places are copies of the same objects are
/// planned once.
/// @throws UsageError as the other overload; the message names the tensor.
RANKMESH_API TransferPlan plan_transfer(std::vector<TensorTransfer> tensors,
                                        const Machine* machine = nullptr,
                                        const TransferOptions& options = {});
/// @cond  This overload only refuses calls.
template <std::convertible_to<std::string_view> Text, class... A>
TransferPlan plan_transfer(const Text&, std::string_view, A&&...) {
  static_assert(sizeof(Text) == 0,
                "texts are parsed first: write plan_transfer(TensorPlacement::parse(from), "
                "TensorPlacement::parse(to))");
  return TransferPlan{nullptr};
}
/// @endcond

template <class Take>
void TransferBlock::for_each(Take&& take) const {
  const auto repeat = [&](const auto& self, std::size_t level, std::int64_t s,
                          std::int64_t t) -> void {
    if (level == loops.size()) {
      take(s, t, length);
      return;
    }
    const TransferLoop& loop = loops[level];
    for (std::int64_t i = 0; i < loop.count; ++i, s += loop.source_stride, t += loop.target_stride)
      self(self, level + 1, s, t);
  };
  repeat(repeat, 0, source, target);
}

}  // namespace rankmesh
