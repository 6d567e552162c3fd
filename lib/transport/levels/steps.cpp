// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/steps.hpp"

#include "transport/detail/reduce_kernels.hpp"

namespace rankmesh::levels {
namespace {

using shm::copy_bytes;
using shm::element;
using shm::Flow;
using shm::Group;
using shm::Payload;
using shm::Step;

const Chunk& chunk_of(const Call& call) { return static_cast<const Chunk&>(call); }
const Chunk& chunk_of(const Step& step) { return chunk_of(step.call); }

// A step carries the same elements of all parts, so every carrier takes part in each step. A member
// publishes some of the parts, one after the other.
Payload payload_of(const Chunk& chunk, int parts) {
  return {chunk.part, size_of(chunk.type()) * static_cast<std::size_t>(parts)};
}
Payload one_part(const Group&, const Call& call) { return payload_of(chunk_of(call), 1); }
Payload all_parts(const Group&, const Call& call) {
  return payload_of(chunk_of(call), chunk_of(call).parts());
}
// Carrier 0 carries the most.
Payload carried_parts(const Group&, const Call& call) {
  return payload_of(chunk_of(call), chunk_of(call).carried(0));
}
Payload blocks_of_node(const Group&, const Call& call) {
  const Chunk& chunk = chunk_of(call);
  return payload_of(chunk, chunk.blocks(chunk.own_node(), 0));
}

Range range_of(const Step& step, int part) {
  return chunk_of(step).range(part, step.at, step.count);
}
// Number k of the parts that a member publishes.
std::byte* published(const Group& group, const Step& step, std::size_t member, int k) {
  return group.payload(member, step) + chunk_of(step).bytes(k * step.count);
}
// Number k of the parts that a carrier has in its scratch memory.
std::byte* carried(std::byte* memory, const Step& step, int k) {
  return memory + chunk_of(step).bytes(k * chunk_of(step).part + step.at);
}
std::size_t place_of(const Chunk& chunk, int carrier) {
  return static_cast<std::size_t>(chunk.place_of_carrier(carrier));
}

template <class Buffer>
void publish_all(const Group& group, const Step& step, const Buffer& buffer) {
  for (int part = 0; part < chunk_of(step).parts(); ++part) {
    const Range range = range_of(step, part);
    copy_bytes(published(group, step, group.self, part), element(buffer, range.begin),
               chunk_of(step).bytes(range.count));
  }
}
void publish_input(const Group& group, const Step& step) { publish_all(group, step, step.call.in); }

void publish_carried(const Group& group, const Step& step) {
  const Chunk& chunk = chunk_of(step);
  if (!chunk.is_carrier()) return;
  chunk.for_each_part(chunk.carrier(), [&](int k, int part) {
    copy_bytes(published(group, step, group.self, k), carried(chunk.result, step, k),
               chunk.bytes(range_of(step, part).count));
  });
}

void read_carried(const Group& group, const Step& step) {
  const Chunk& chunk = chunk_of(step);
  for (int carrier = 0; carrier < chunk.carriers; ++carrier) {
    const std::size_t from = place_of(chunk, carrier);
    chunk.for_each_part(carrier, [&](int k, int part) {
      const Range range = range_of(step, part);
      copy_bytes(
          element(chunk.out, range.begin),
          from == group.self ? carried(chunk.result, step, k) : published(group, step, from, k),
          chunk.bytes(range.count));
    });
  }
}

void read_reduced(const Group& group, const Step& step) {
  const Chunk& chunk = chunk_of(step);
  if (!chunk.is_carrier()) return;
  chunk.for_each_part(chunk.carrier(), [&](int k, int part) {
    const Range range = range_of(step, part);
    for (std::size_t member = 0; member < group.size; ++member)
      group.sources[member] = member == group.self ? element(chunk.in, range.begin)
                                                   : published(group, step, member, part);
    detail::reduce(chunk.type(), partial_reduction(chunk.reduction),
                   carried(chunk.partial, step, k), group.sources.get(),
                   static_cast<int>(group.size), range.count);
  });
}

// The input of an operation that collects blocks is the member's own block.
const std::byte* own_block(const Step& step) {
  return element(step.call.in, chunk_of(step).begin + step.at);
}

void read_blocks_of_node(const Group& group, const Step& step) {
  const Chunk& chunk = chunk_of(step);
  if (!chunk.is_carrier()) return;
  const int first = chunk.first_block(chunk.own_node(), chunk.carrier());
  for (int i = 0; i < chunk.blocks(chunk.own_node(), chunk.carrier()); ++i) {
    const std::size_t from = place_of(chunk, chunk.carrier() + i * chunk.carriers);
    copy_bytes(carried(chunk.partial, step, first + i),
               from == group.self ? own_block(step) : group.payload(from, step), step.bytes);
  }
}

// The output of an operation that distributes blocks is the member's own block.
void take_block(const Step& step, const std::byte* block) {
  copy_bytes(element(step.call.out, chunk_of(step).begin + step.at), block,
             chunk_of(step).bytes(step.count));
}

void publish_blocks_of_node(const Group& group, const Step& step) {
  const Chunk& chunk = chunk_of(step);
  if (!chunk.is_carrier()) return;
  for (int i = 0; i < chunk.blocks(chunk.own_node(), chunk.carrier()); ++i)
    copy_bytes(published(group, step, group.self, i), carried(chunk.result, step, i),
               chunk.bytes(step.count));
}

void read_block_of_carrier(const Group& group, const Step& step) {
  const Chunk& chunk = chunk_of(step);
  const std::size_t from = place_of(chunk, chunk.carrier() % chunk.carriers);
  const int k = chunk.carrier() / chunk.carriers;
  take_block(step,
             from == group.self ? carried(chunk.result, step, k) : published(group, step, from, k));
}

void read_blocks_of_root(const Group& group, const Step& step) {
  const Chunk& chunk = chunk_of(step);
  const auto block_of = [&](int member) -> const std::byte* {
    if (chunk.is_root()) return element(chunk.in, range_of(step, member).begin);
    return published(group, step, shm::root_of(chunk), member);
  };
  take_block(step, block_of(chunk.shape->self));
  if (!chunk.is_carrier()) return;
  chunk.for_each_part(chunk.carrier(), [&](int k, int member) {
    copy_bytes(carried(chunk.partial, step, k), block_of(member), chunk.bytes(step.count));
  });
}

}  // namespace

extern constexpr CarrierSteps reduce_parts{
    {
        .name = "reduce_parts",
        .operation = Operation::all_reduce,
        .payload = all_parts,
        .first = {.publish = publish_input, .read = read_reduced},
    },
    Flow::all_to_root};

extern constexpr CarrierSteps collect_blocks{
    {
        .name = "collect_blocks",
        .operation = Operation::all_gather,
        .payload = one_part,
        .first = {.publish =
                      [](const Group& group, const Step& step) {
                        copy_bytes(group.payload(group.self, step), own_block(step), step.bytes);
                      },
                  .read = read_blocks_of_node},
    },
    Flow::all_to_root};

extern constexpr CarrierSteps spread_parts{
    {
        .name = "spread_parts",
        .operation = Operation::all_reduce,
        .payload = carried_parts,
        .first = {.publish = publish_carried, .read = read_carried},
    },
    Flow::root_to_all};

extern constexpr CarrierSteps hand_out_blocks{
    {
        .name = "hand_out_blocks",
        .operation = Operation::reduce_scatter,
        .payload = blocks_of_node,
        .first = {.publish = publish_blocks_of_node, .read = read_block_of_carrier},
    },
    Flow::root_to_all};

extern constexpr shm::Algorithm parts_to_root{
    .name = "parts_to_root",
    .operation = Operation::reduce,
    .payload = carried_parts,
    .first = {.flow = Flow::all_to_root,
              .publish = publish_carried,
              .read =
                  [](const Group& group, const Step& step) {
                    if (chunk_of(step).is_root()) read_carried(group, step);
                  }},
};

extern constexpr shm::Algorithm spread_from_root{
    .name = "spread_from_root",
    .operation = Operation::broadcast,
    .payload = all_parts,
    .first = {.flow = Flow::root_to_all,
              .publish = [](const Group& group,
                            const Step& step) { publish_all(group, step, step.call.out); },
              .read =
                  [](const Group& group, const Step& step) {
                    if (shm::is_root(group, step.call)) return;
                    for (int part = 0; part < chunk_of(step).parts(); ++part) {
                      const Range range = range_of(step, part);
                      copy_bytes(element(step.call.out, range.begin),
                                 published(group, step, shm::root_of(step.call), part),
                                 chunk_of(step).bytes(range.count));
                    }
                  }},
};

extern constexpr shm::Algorithm take_blocks{
    .name = "take_blocks",
    .operation = Operation::scatter,
    .payload = all_parts,
    .first = {.flow = Flow::root_to_all, .publish = publish_input, .read = read_blocks_of_root},
};

}  // namespace rankmesh::levels
