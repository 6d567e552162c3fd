// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// Every member publishes a piece of each block and reduces its own block of all payloads.
extern constexpr Algorithm reduce_scatter{
    .name = "reduce_scatter",
    .operation = Operation::reduce_scatter,
    .payload = payload_of_blocks,
    .first = {.publish = publish_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    const Buffer& out = step.call.out;
                    const std::int64_t count = count_in(step, out.count);
                    if (count == 0) return;
                    group.set_sources(step, part_offset(group, step, group.self));
                    reduce_sources(group, step.call, element(out, step.at), count);
                  }},
    .run_small = run_in_one_step<reduce_scatter>,
};
extern constexpr Algorithm reduce_scatter_v =
    v_form_of(reduce_scatter, "reduce_scatter_v", payload_of_all_blocks, publish_blocks);

}  // namespace rankmesh::shm
