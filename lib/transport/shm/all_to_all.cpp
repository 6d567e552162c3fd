// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"
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
    .first = {.publish = publish_blocks, .read = exchange_blocks},
    .run_small = run_in_one_step<all_to_all>,
};
extern constexpr Algorithm all_to_all_v =
    v_form_of(all_to_all, "all_to_all_v", payload_of_all_blocks, publish_blocks);

}  // namespace rankmesh::shm
