// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/blocks.hpp"

namespace rankmesh::shm {

// Every member publishes a part of each block and reduces its own block of all payloads.
extern constexpr Algorithm reduce_scatter_v{
    .name = "reduce_scatter_v",
    .operation = Operation::reduce_scatter,
    .payload = payload_of_all_blocks,
    .lengths = lengths_of_blocks,
    .first = {.publish = publish_all_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    const Buffer& out = step.call.out;
                    const std::int64_t count = count_in(step, out.count);
                    if (count == 0) return;
                    for (std::size_t k = 0; k < group.size; ++k)
                      group.sources[k] = part_at(group, step, k, group.self);
                    reduce_sources(group, step.call, element(out, step.at), count);
                  },
              .agrees = counts_agree},
};

}  // namespace rankmesh::shm
