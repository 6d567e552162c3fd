// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/blocks.hpp"

#include "transport/detail/reduce_kernels.hpp"
#include "transport/levels/scheme.hpp"

namespace rankmesh::levels {
namespace {

using shm::Flow;
using shm::Group;
using shm::Payload;
using shm::Step;

// The payloads of a piece: one block, one block for each member, the blocks of one node that a
// carrier carries, and all blocks that it carries. Carrier 0 carries the most blocks.
Payload one_block(const Group&, const Call& call) {
  const Piece& piece = piece_of(call);
  return {piece.count, piece.element_bytes()};
}
Payload blocks_of_all(const Group&, const Call& call) {
  const Piece& piece = piece_of(call);
  return {piece.count, piece.element_bytes() * static_cast<std::size_t>(piece.shape->size())};
}
Payload blocks_of_node(const Group&, const Call& call) {
  const Piece& piece = piece_of(call);
  const int blocks = piece.blocks(piece.shape->own().node, 0);
  return {piece.count, piece.element_bytes() * static_cast<std::size_t>(blocks)};
}
Payload blocks_of_carrier(const Group&, const Call& call) {
  const Piece& piece = piece_of(call);
  return {piece.count, piece.element_bytes() * static_cast<std::size_t>(piece.all_blocks(0))};
}

// The block of a member in a buffer with a block for each member.
template <class Byte>
Byte* block_in(const BasicBuffer<Byte>& buffer, const Step& step, int member) {
  const std::int64_t apart = buffer.count / piece_of(step).shape->size();
  return shm::element(buffer, member * apart + piece_of(step).begin + step.at);
}

// Block k in the scratch memory of a carrier, where the blocks of a piece follow each other.
template <class Byte>
Byte* scratch_block(Byte* scratch, const Step& step, int k) {
  const Piece& piece = piece_of(step);
  return scratch + piece.bytes(k * piece.count + step.at);
}

// Block k in a payload.
std::byte* payload_block(std::byte* payload, const Step& step, int k) {
  return payload + static_cast<std::size_t>(k) * piece_of(step).bytes(step.count);
}

// Calls action(k, member) for all blocks that a carrier carries; k counts them.
template <class Action>
void for_each_block(const Piece& piece, int carrier, Action&& action) {
  int k = 0;
  for (int node = 0; node < piece.shape->node_count(); ++node)
    for (int i = 0; i < piece.blocks(node, carrier); ++i)
      action(k++, piece.member_of_block(node, carrier, i));
}

void publish_all_blocks(const Group& group, const Step& step) {
  for (int member = 0; member < piece_of(step).shape->size(); ++member)
    shm::copy_bytes(payload_block(group.payload(group.self, step), step, member),
                    block_in(step.call.in, step, member), piece_of(step).bytes(step.count));
}

void read_reduced(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  if (!piece.is_carrier()) return;
  for_each_block(piece, piece.carrier(), [&](int k, int member) {
    group.set_sources(step, static_cast<std::size_t>(member) * piece.bytes(step.count));
    group.sources[group.self] = block_in(step.call.in, step, member);
    detail::reduce(piece.type(), piece.reduction == ReduceOp::avg ? ReduceOp::sum : piece.reduction,
                   scratch_block(piece.scratch_partial(), step, k), group.sources.get(),
                   static_cast<int>(group.size), step.count);
  });
}

void publish_own_block(const Group& group, const Step& step) {
  shm::copy_bytes(group.payload(group.self, step),
                  shm::element(step.call.in, piece_of(step).begin + step.at), step.bytes);
}

void read_own_blocks(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  if (!piece.is_carrier()) return;
  const int node = piece.shape->own().node;
  const int first = piece.first_block(node, piece.carrier());
  for (int i = 0; i < piece.blocks(node, piece.carrier()); ++i) {
    const int member = piece.member_of_block(node, piece.carrier(), i);
    const auto place = static_cast<std::size_t>(piece.shape->place(member).index);
    shm::copy_bytes(scratch_block(piece.scratch_partial(), step, first + i),
                    place == group.self ? shm::element(step.call.in, piece.begin + step.at)
                                        : group.payload(place, step),
                    step.bytes);
  }
}

void read_from_root(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  const auto block_of = [&](int member) {
    return piece.is_root()
               ? block_in(step.call.in, step, member)
               : payload_block(group.payload(shm::root_of(step.call), step), step, member);
  };
  const std::size_t bytes = piece.bytes(step.count);
  shm::copy_bytes(shm::element(step.call.out, piece.begin + step.at), block_of(piece.shape->self),
                  bytes);
  if (!piece.is_carrier()) return;
  for_each_block(piece, piece.carrier(), [&](int k, int member) {
    shm::copy_bytes(scratch_block(piece.scratch_partial(), step, k), block_of(member), bytes);
  });
}

void publish_blocks_of_node(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  if (!piece.is_carrier()) return;
  for (int i = 0; i < piece.blocks(piece.shape->own().node, piece.carrier()); ++i)
    shm::copy_bytes(payload_block(group.payload(group.self, step), step, i),
                    scratch_block(piece.result, step, i), piece.bytes(step.count));
}

void read_handed_out(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  const int own = piece.carrier();
  const auto from = static_cast<std::size_t>(piece.place_of_carrier(own % piece.carriers));
  const int k = own / piece.carriers;
  shm::copy_bytes(shm::element(step.call.out, piece.begin + step.at),
                  from == group.self ? scratch_block(piece.result, step, k)
                                     : payload_block(group.payload(from, step), step, k),
                  piece.bytes(step.count));
}

void publish_carried_blocks(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  if (!piece.is_carrier()) return;
  for (int k = 0; k < piece.all_blocks(piece.carrier()); ++k)
    shm::copy_bytes(payload_block(group.payload(group.self, step), step, k),
                    scratch_block(piece.scratch_partial(), step, k), piece.bytes(step.count));
}

void read_carried_blocks(const Group& group, const Step& step) {
  const Piece& piece = piece_of(step);
  for (int carrier = 0; carrier < piece.carriers; ++carrier) {
    const auto from = static_cast<std::size_t>(piece.place_of_carrier(carrier));
    for_each_block(piece, carrier, [&](int k, int member) {
      shm::copy_bytes(block_in(step.call.out, step, member),
                      from == group.self ? scratch_block(piece.scratch_partial(), step, k)
                                         : payload_block(group.payload(from, step), step, k),
                      piece.bytes(step.count));
    });
  }
}

}  // namespace

extern constexpr CarrierSteps reduce_blocks{
    {
        .name = "reduce_blocks",
        .operation = Operation::reduce_scatter,
        .payload = blocks_of_all,
        .first = {.publish = publish_all_blocks, .read = read_reduced},
    },
    Flow::all_to_root};

extern constexpr CarrierSteps collect_blocks{
    {
        .name = "collect_blocks",
        .operation = Operation::all_gather,
        .payload = one_block,
        .first = {.publish = publish_own_block, .read = read_own_blocks},
    },
    Flow::all_to_root};

extern constexpr CarrierSteps hand_out_blocks{
    {
        .name = "hand_out_blocks",
        .operation = Operation::reduce_scatter,
        .payload = blocks_of_node,
        .first = {.publish = publish_blocks_of_node, .read = read_handed_out},
    },
    Flow::root_to_all};

extern constexpr CarrierSteps spread_blocks{
    {
        .name = "spread_blocks",
        .operation = Operation::all_gather,
        .payload = blocks_of_carrier,
        .first = {.publish = publish_carried_blocks, .read = read_carried_blocks},
    },
    Flow::root_to_all};

extern constexpr shm::Algorithm take_blocks{
    .name = "take_blocks",
    .operation = Operation::scatter,
    .payload = blocks_of_all,
    .first = {.flow = Flow::root_to_all, .publish = publish_all_blocks, .read = read_from_root},
};

extern constexpr shm::Algorithm blocks_to_root{
    .name = "blocks_to_root",
    .operation = Operation::gather,
    .payload = blocks_of_carrier,
    .first = {.flow = Flow::all_to_root,
              .publish = publish_carried_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    if (piece_of(step).is_root()) read_carried_blocks(group, step);
                  }},
};

}  // namespace rankmesh::levels
