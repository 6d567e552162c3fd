// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "transport/shm/direct_reads.hpp"

namespace rankmesh::shm {
namespace {

// A message is divided into rows of one element per member, and a piece consists of several rows.
// Each member reduces as many consecutive elements of the piece as it has rows.
Share part_of(const Group& group, const Step& step, std::size_t member) {
  const std::int64_t begin = step.at * static_cast<std::int64_t>(group.size) +
                             step.count * static_cast<std::int64_t>(member);
  return {begin, std::clamp<std::int64_t>(step.call.in.count - begin, 0, step.count)};
}

void reduce_part(const Group& group, const Step& step) {
  take_addresses(group, step);
  const Share part = part_of(group, step, group.self);
  (void)reduce_inputs(group, step.call, part.begin, part.count, group.payload(group.self, step));
}

void copy_parts_to_root(const Group& group, const Step& step) {
  if (!is_root(group, step.call)) return;
  for (std::size_t k = 0; k < group.size; ++k) {
    const Share part = part_of(group, step, k);
    copy_bytes(element(step.call.out, part.begin), group.previous_payload(k, step),
               static_cast<std::size_t>(part.count) * size_of(step.call.in.type));
  }
}

}  // namespace

// For large messages: for each piece, every member reduces its part of the inputs of all members
// into its slot, and the root copies the parts. All members wait for the second phase, because it
// says that the other members have finished reading their inputs. Two members are faster through
// their slots: the system copies what a member reads, and there is little work to share.
extern constexpr Algorithm direct_reduce{
    .name = "direct_reduce",
    .operation = Operation::reduce,
    .applies =
        [](const Group& group, const Call& call) {
          return group.size > 2 && reads_directly(group, call.in.bytes());
        },
    .payload =
        [](const Group& group, const Call& call) {
          const auto size = static_cast<std::int64_t>(group.size);
          return Payload{(call.in.count + size - 1) / size, size_of(call.in.type)};
        },
    .first = {.publish = publish_address, .read = reduce_part},
    .second = Phase{.read = copy_parts_to_root},
    .is_direct = true,
};

}  // namespace rankmesh::shm
