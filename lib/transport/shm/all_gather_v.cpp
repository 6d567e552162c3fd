// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"

namespace rankmesh::shm {

// Every member publishes its block and copies the blocks of all.
extern constexpr Algorithm all_gather_v{
    .name = "all_gather_v",
    .operation = Operation::all_gather,
    .payload = payload_of_own_block,
    .lengths = lengths_of_blocks,
    .first = {.publish = publish_own_block, .read = collect_parts, .agrees = counts_agree},
};

}  // namespace rankmesh::shm
