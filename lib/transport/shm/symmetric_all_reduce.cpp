// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "transport/shm/symmetric.hpp"

namespace rankmesh::shm {
namespace {

// The size of a block. A block is reduced and then written to all outputs before the next block is
// read, so that the result is still in the nearest cache when it is copied.
constexpr std::size_t block_bytes = 8192;

void reduce_share_into_all_outputs(const Group& group, const Step& step) {
  const Call& call = step.call;
  const std::size_t unit = size_of(call.out.type);
  const Share share = share_of(group.size, group.self, call.out.count, call.out.type);
  const std::int64_t end = share.begin + share.count;
  const auto block = static_cast<std::int64_t>(block_bytes / unit);
  for (std::int64_t at = share.begin; at < end; at += block) {
    const std::int64_t count = std::min(block, end - at);
    const auto offset = static_cast<std::size_t>(at) * unit;
    for (std::size_t k = 0; k < group.size; ++k)
      group.sources[k] = input_of(group, step, k) + offset;
    std::byte* const mine = call.out.data + offset;
    reduce_sources(group, call, mine, count);
    for (std::size_t k = 0; k < group.size; ++k)
      if (k != group.self)
        copy_bytes(output_of(group, step, k) + offset, mine,
                   static_cast<std::size_t>(count) * unit);
  }
}

}  // namespace

// Every member reduces its share of all inputs and writes the result to all outputs. In place
// (input and output are the same memory) this is safe too: only one member reads and writes the
// elements of a share.
extern constexpr Algorithm symmetric_all_reduce{
    .name = "symmetric_all_reduce",
    .operation = Operation::all_reduce,
    .forms = CallDescriptor::symmetric,
    .is_symmetric =
        [](const Call& call, const void* group) {
          return lies_in_window(call.in.window, group) && lies_in_window(call.out.window, group);
        },
    .payload = payload_of_offsets,
    .first = {.publish = publish_offsets, .read = reduce_share_into_all_outputs},
    .second = Phase{},
};

}  // namespace rankmesh::shm
