// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// Every member publishes its block and copies the blocks of all.
extern constexpr Algorithm all_gather{
    .name = "all_gather",
    .operation = Operation::all_gather,
    .payload = payload_of_input,
    .first = {.publish = publish_input, .read = collect_blocks},
    .run_small = run_in_one_step<all_gather>,
};
extern constexpr Algorithm all_gather_v =
    v_form_of(all_gather, "all_gather_v", payload_of_own_block, publish_own_block);

}  // namespace rankmesh::shm
