// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"

namespace rankmesh::shm {

// Every member publishes a part of each block and copies the blocks that are meant for it.
extern constexpr Algorithm all_to_all_v{
    .name = "all_to_all_v",
    .operation = Operation::all_to_all,
    .payload = payload_of_all_blocks,
    .lengths = lengths_of_blocks,
    .first = {.publish = publish_all_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    for (std::size_t k = 0; k < group.size; ++k)
                      collect_part(step, k, part_at(group, step, k, group.self));
                  },
              .agrees = counts_agree},
};

}  // namespace rankmesh::shm
