// SPDX-License-Identifier: BSD-3-Clause
// A chunk of a message that is carried on two levels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/transport/call.hpp"
#include "transport/detail/call_descriptor.hpp"
#include "transport/levels/shape.hpp"
#include "transport/shm/algorithm.hpp"

namespace rankmesh::levels {

using Range = shm::Share;  ///< Of elements in a buffer of the call.

/// A chunk of a call. The members of each node that exchange messages with other nodes are its
/// carriers. Every node has the same number of carriers, and carrier j of a node exchanges messages
/// only with carrier j of the other nodes. Small messages have one carrier per node.
///
/// A chunk consists of parts of equal length, each of which one carrier carries. In operations with
/// a block for each member, part k is the chunk's piece of the block of member k: carrier j carries
/// the parts of the members j, j + carriers, ... of each node, counted from carrier 0. In the other
/// operations (all_reduce, reduce, broadcast), part j is the share of carrier j.
///
/// A chunk is also the call of its steps in shared memory: `root` is the place of carrier 0 on this
/// node, and `original` the call of the program.
struct Chunk : Call {
  const Call* whole = nullptr;
  const Shape* shape = nullptr;
  bool has_blocks_of_members = false;
  std::int64_t begin = 0, count = 0;  ///< The elements of the message, or of each block.
  std::int64_t block = 0;             ///< The elements of a whole block.
  std::int64_t part = 0;              ///< The elements of a part; the last shares may be shorter.
  int carriers = 1;

  // Scratch memory of a carrier, see Plan::prepare.
  std::size_t partial_bytes = 0, received_bytes = 0, result_bytes = 0;
  std::byte* partial = nullptr;  ///< All three, one after the other; first the data of this node.
  /// The parts that this member carries, for the steps that spread them.
  std::byte* result = nullptr;

  [[nodiscard]] std::byte* received() const { return partial + partial_bytes; }
  [[nodiscard]] std::byte* scratch_result() const { return received() + received_bytes; }

  [[nodiscard]] DataType type() const { return counts_output(operation) ? out.type : in.type; }
  [[nodiscard]] std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * size_of(type());
  }
  /// Returns how many elements of this type fill a cache line.
  [[nodiscard]] std::int64_t per_line() const {
    return static_cast<std::int64_t>(64 / size_of(type()));
  }

  /// The node of the root; -1 without one.
  int root_node = -1;
  [[nodiscard]] int own_node() const { return shape->own().node; }
  [[nodiscard]] bool is_on_root_node() const { return own_node() == root_node; }
  [[nodiscard]] bool is_root() const { return whole->root.value() == shape->self; }
  /// Returns the place of carrier 0 on a node. The root is carrier 0 of its node.
  [[nodiscard]] int first(int node) const {
    return node == root_node ? shape->place(static_cast<int>(whole->root.value())).index : 0;
  }
  /// Returns a carrier of this node, as a place on the node.
  [[nodiscard]] int place_of_carrier(int carrier) const {
    return (first(own_node()) + carrier) % shape->neighbours();
  }
  /// Returns a member of a node, counted from carrier 0.
  [[nodiscard]] int member(int node, int from_first) const {
    const auto& members = shape->members(node);
    return members[static_cast<std::size_t>((first(node) + from_first) %
                                            static_cast<int>(members.size()))];
  }
  /// Returns the number of this member, counted from carrier 0. If it is not less than `carriers`,
  /// the member is no carrier.
  [[nodiscard]] int carrier() const {
    const int size = shape->neighbours();
    return (shape->own().index - first(own_node()) + size) % size;
  }
  [[nodiscard]] bool is_carrier() const { return carrier() < carriers; }

  [[nodiscard]] int parts() const { return has_blocks_of_members ? shape->size() : carriers; }
  /// Returns at most `most` elements of a part, from its element `at` on.
  [[nodiscard]] Range range(int of_part, std::int64_t at, std::int64_t most) const;
  /// Returns the share of this carrier.
  [[nodiscard]] Range own_share() const { return range(carrier(), 0, part); }
  /// Returns how many blocks of a node's members a carrier carries.
  [[nodiscard]] int blocks(int node, int carrier) const {
    return (shape->members_of(node) - carrier + carriers - 1) / carriers;
  }
  /// Returns the position of the first of these blocks among all blocks that the carrier carries.
  [[nodiscard]] int first_block(int node, int carrier) const;
  /// Returns the bytes of the blocks of a node's members that this carrier carries, and where they
  /// are in `partial` if it has the blocks of all nodes.
  [[nodiscard]] std::size_t bytes_of(int node) const {
    return bytes(count * blocks(node, carrier()));
  }
  [[nodiscard]] std::byte* blocks_of(int node) const {
    return partial + bytes(count * first_block(node, carrier()));
  }
  /// Returns how many parts a carrier carries; carrier 0 carries the most.
  [[nodiscard]] int carried(int carrier) const {
    return has_blocks_of_members ? first_block(shape->node_count(), carrier) : 1;
  }
  /// Calls action(k, part) for all parts that a carrier carries; k counts them.
  template <class Action>
  void for_each_part(int carrier, Action&& action) const {
    if (!has_blocks_of_members) return action(0, carrier);
    int k = 0;
    for (int node = 0; node < shape->node_count(); ++node)
      for (int i = 0; i < blocks(node, carrier); ++i)
        action(k++, member(node, carrier + i * carriers));
  }
  /// Calls action(node) for all nodes except this member's node.
  template <class Action>
  void for_other_nodes(Action&& action) const {
    for (int node = 0; node < shape->node_count(); ++node)
      if (node != own_node()) action(node);
  }
};

/// Returns the reduction of partial results. The sum of an average is divided when the results of
/// all nodes are added up.
[[nodiscard]] constexpr ReduceOp partial_reduction(ReduceOp reduction) {
  return reduction == ReduceOp::avg ? ReduceOp::sum : reduction;
}
/// Reduces the partial results of all nodes in their order, and divides averages.
/// @param received  The partial results of the other nodes, `stride` bytes apart, by node.
void reduce_nodes(const Chunk& chunk, std::byte* out, const std::byte* own,
                  const std::byte* received, std::size_t stride, std::int64_t count);

}  // namespace rankmesh::levels
