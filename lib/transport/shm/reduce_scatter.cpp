// SPDX-License-Identifier: BSD-3-Clause
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
                    group.set_sources(step, group.self * (step.bytes / group.size));
                    reduce_sources(group, step.call, element(step.call.out, step.at), step.count);
                  }},
    .run_small = run_in_one_step<reduce_scatter>,
};

}  // namespace rankmesh::shm
