// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// The root publishes a piece of each block. Each member copies its block; the root copies its own
// from its input.
extern constexpr Algorithm scatter{
    .name = "scatter",
    .operation = Operation::scatter,
    .payload = payload_of_blocks,
    .first = {.flow = Flow::root_to_all,
              .publish = publish_blocks,
              .read =
                  [](const Group& group, const Step& step) {
                    const Call& call = step.call;
                    const std::size_t block = step.bytes / group.size;
                    const auto self = static_cast<std::int64_t>(group.self);
                    const std::byte* from =
                        is_root(group, call)
                            ? element(call.in, self * call.out.count + step.at)
                            : group.payload(root_of(call), step) + group.self * block;
                    copy_bytes(element(call.out, step.at), from, block);
                  }},
    .run_small = run_in_one_step<scatter>,
};

}  // namespace rankmesh::shm
