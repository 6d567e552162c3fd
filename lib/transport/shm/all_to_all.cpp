// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// Every member publishes a piece of each block and copies the blocks that are meant for it. A
// member copies the block for itself from its payload, too. It does not copy it from the input,
// because an operation in place may already have overwritten the input.
extern constexpr Algorithm all_to_all{
    .name = "all_to_all",
    .operation = Operation::all_to_all,
    .payload =
        [](const Group& group, const Call& call) {
          return Payload{call.in.count / static_cast<std::int64_t>(group.size),
                         size_of(call.in.type) * group.size};
        },
    .first = {.publish = publish_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    const Buffer& out = step.call.out;
                    const std::size_t block = step.bytes / group.size;
                    const std::int64_t apart = out.count / static_cast<std::int64_t>(group.size);
                    for (std::size_t k = 0; k < group.size; ++k)
                      copy_bytes(element(out, static_cast<std::int64_t>(k) * apart + step.at),
                                 group.payload(k, step) + group.self * block, block);
                  }},
    .run_small = run_in_one_step<all_to_all>,
};

}  // namespace rankmesh::shm
