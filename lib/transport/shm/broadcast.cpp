// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// The root publishes, and the other members copy. The root waits for no member, so it can run
// ahead_of() steps ahead of the slowest member.
extern constexpr Algorithm broadcast{
    .name = "broadcast",
    .operation = Operation::broadcast,
    .payload = payload_of_output,
    .first = {.flow = Flow::root_to_all,
              .publish =
                  [](const Group& group, const Step& step) {
                    copy_bytes(group.payload(group.self, step), element(step.call.out, step.at),
                               step.bytes);
                  },
              .read =
                  [](const Group& group, const Step& step) {
                    if (is_root(group, step.call)) return;
                    copy_bytes(element(step.call.out, step.at),
                               group.payload(root_of(step.call), step), step.bytes);
                  }},
    .run_small = run_in_one_step<broadcast>,
};

}  // namespace rankmesh::shm
