// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"

namespace rankmesh::shm {

// Every member publishes its block. Only the root reads more than the counts.
extern constexpr Algorithm gather_v{
    .name = "gather_v",
    .operation = Operation::gather,
    .payload = payload_of_own_block,
    .lengths = lengths_of_blocks,
    .first = {.publish = publish_own_block,
              .read =
                  [](const Group& group, const Step& step) {
                    if (is_root(group, step.call)) collect_parts(group, step);
                  },
              .agrees = counts_agree},
};

}  // namespace rankmesh::shm
