// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"

namespace rankmesh::shm {

// The root publishes a part of each block; the others publish their counts only.
extern constexpr Algorithm scatter_v{
    .name = "scatter_v",
    .operation = Operation::scatter,
    .payload = payload_of_all_blocks,
    .lengths = lengths_of_blocks,
    .first = {.publish = publish_all_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    collect_part(step, group.self,
                                 part_at(group, step, root_of(step.call), group.self));
                  },
              .agrees = counts_agree},
};

}  // namespace rankmesh::shm
