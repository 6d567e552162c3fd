// SPDX-License-Identifier: BSD-3-Clause
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

}  // namespace rankmesh::shm
