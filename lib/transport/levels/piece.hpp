// SPDX-License-Identifier: BSD-3-Clause
// A piece of a message that is carried on two levels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/transport/call.hpp"
#include "transport/detail/call_descriptor.hpp"
#include "transport/levels/shape.hpp"

namespace rankmesh::levels {

/// A piece of a call. The members of each node that exchange messages with other nodes are its
/// carriers. Every node has the same number of carriers, and carrier j of a node exchanges messages
/// only with carrier j of the other nodes. Small messages have one carrier per node.
///
/// Operations with one buffer (all_reduce, reduce, broadcast) divide the elements of the piece into
/// shares, one per carrier. In operations with a block for each member, carrier j carries the
/// blocks of the members j, j + carriers, ... of each node. The members are counted from carrier 0.
///
/// A piece is also the call of its steps in shared memory: `root` is the place of carrier 0 on this
/// node, and `original` the call of the program.
struct Piece : Call {
  const Call* whole = nullptr;
  const Shape* shape = nullptr;
  /// The elements of the message, or of each block, that the piece carries.
  std::int64_t begin = 0, count = 0;
  int carriers = 1;
  std::int64_t share = 0;  ///< The elements of a share; the last ones may be shorter.

  // Scratch memory of a carrier, see Scheme::prepare.
  std::size_t partial_bytes = 0, received_bytes = 0, result_bytes = 0;
  std::byte* scratch = nullptr;  ///< All three parts, one after the other.
  /// The data of this node: sums of its members, or blocks. It may be the input itself.
  const std::byte* partial = nullptr;
  /// The result of the exchange with the other nodes, for spread steps.
  std::byte* result = nullptr;

  [[nodiscard]] std::byte* scratch_partial() const { return scratch; }
  [[nodiscard]] std::byte* received() const { return scratch + partial_bytes; }
  [[nodiscard]] std::byte* scratch_result() const { return received() + received_bytes; }

  [[nodiscard]] std::size_t element_bytes() const { return size_of(type()); }
  [[nodiscard]] DataType type() const {
    return counts_output(operation) ? out.type : in.type;
  }
  [[nodiscard]] std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * element_bytes();
  }

  /// The node of the root; -1 without one.
  int root_node = -1;
  [[nodiscard]] bool is_on_root_node() const { return shape->own().node == root_node; }
  [[nodiscard]] bool is_root() const { return whole->root.value() == shape->self; }
  /// Returns the place of carrier 0 on a node. The root is carrier 0 of its node.
  [[nodiscard]] int first(int node) const {
    return node == root_node ? shape->place(static_cast<int>(whole->root.value())).index : 0;
  }
  /// Returns a carrier of this node, as a place on the node.
  [[nodiscard]] int place_of_carrier(int carrier) const {
    return (first(shape->own().node) + carrier) % shape->neighbours();
  }
  /// Returns a member of a node, counted from carrier 0.
  [[nodiscard]] int member(int node, int from_first) const {
    const auto& members = shape->members(node);
    return members[static_cast<std::size_t>((first(node) + from_first) %
                                            static_cast<int>(members.size()))];
  }
  /// Returns how many places after carrier 0 a member of a node is.
  [[nodiscard]] int from_first(int member) const {
    const Shape::Place& place = shape->place(member);
    const int size = shape->members_of(place.node);
    return (place.index - first(place.node) + size) % size;
  }
  /// Returns the number of this member as a carrier. If it is not less than `carriers`, the member
  /// is no carrier.
  [[nodiscard]] int carrier() const { return from_first(shape->self); }
  [[nodiscard]] bool is_carrier() const { return carrier() < carriers; }

  /// A range of elements, relative to `begin`.
  struct Range {
    std::int64_t begin, count;
  };
  /// Returns the part of a carrier's share that begins at element `at` of it and has at most
  /// `most` elements.
  [[nodiscard]] Range part(int carrier, std::int64_t at, std::int64_t most) const;
  [[nodiscard]] Range share_of(int carrier) const { return part(carrier, 0, share); }

  /// Returns how many blocks of a node's members a carrier carries.
  [[nodiscard]] int blocks(int node, int carrier) const {
    return (shape->members_of(node) - carrier + carriers - 1) / carriers;
  }
  /// Returns the position of the first of these blocks among all blocks that the carrier carries.
  [[nodiscard]] int first_block(int node, int carrier) const;
  /// Returns how many blocks a carrier carries; carrier 0 carries the most.
  [[nodiscard]] int all_blocks(int carrier) const {
    return first_block(shape->node_count(), carrier);
  }
  /// Returns the member whose block is number k of a node.
  [[nodiscard]] int member_of_block(int node, int carrier, int k) const {
    return member(node, carrier + k * carriers);
  }
};

/// Reduces the partial results of all nodes in their order, and divides averages.
/// @param received  The partial results of the other nodes, `stride` bytes apart, by node.
void reduce_nodes(const Piece& piece, std::byte* out, const std::byte* own,
                  const std::byte* received, std::size_t stride, std::int64_t count);

}  // namespace rankmesh::levels
