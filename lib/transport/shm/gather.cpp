// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// Every member other than the root publishes its block. Only the root waits.
extern constexpr Algorithm gather{
    .name = "gather",
    .operation = Operation::gather,
    .payload = payload_of_input,
    .first = {.flow = Flow::all_to_root,
              .publish = publish_input,
              .read =
                  [](const Group& group, const Step& step) {
                    if (is_root(group, step.call)) collect_blocks(group, step);
                  }},
    .run_small = run_in_one_step<gather>,
};
extern constexpr Algorithm gather_v =
    v_form_of(gather, "gather_v", payload_of_own_block, publish_own_block);

}  // namespace rankmesh::shm
