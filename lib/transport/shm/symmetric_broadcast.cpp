// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/symmetric.hpp"

namespace rankmesh::shm {

// The other members copy from the root's memory. The second phase tells the root that they have
// finished. They do not wait for each other, because no member reads their memory.
extern constexpr Algorithm symmetric_broadcast{
    .name = "symmetric_broadcast",
    .operation = Operation::broadcast,
    .forms = CallDescriptor::symmetric,
    .is_symmetric = [](const Call& call,
                       const void* group) { return lies_in_window(call.out.window, group); },
    .payload = payload_of_offsets,
    .first = {.flow = Flow::root_to_all,
              .publish = publish_offsets,
              .read =
                  [](const Group& group, const Step& step) {
                    if (is_root(group, step.call)) return;
                    copy_bytes(step.call.out.data, output_of(group, step, root_of(step.call)),
                               static_cast<std::size_t>(step.call.out.bytes()));
                  }},
    .second = Phase{.flow = Flow::all_to_root},
};

}  // namespace rankmesh::shm
