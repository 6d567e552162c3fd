// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// The root publishes a piece of each block, and each member copies its own.
extern constexpr Algorithm scatter{
    .name = "scatter",
    .operation = Operation::scatter,
    .payload = payload_of_blocks,
    .first = {.flow = Flow::root_to_all,
              .publish = publish_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    take_part(step, step.call.out,
                              group.payload(root_of(step.call), step) +
                                  part_offset(group, step, group.self));
                  }},
    .run_small = run_in_one_step<scatter>,
};
extern constexpr Algorithm scatter_v =
    v_form_of(scatter, "scatter_v", payload_of_all_blocks, publish_blocks);

}  // namespace rankmesh::shm
