// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/symmetric.hpp"

namespace rankmesh::shm {

// Every member copies its block into its own output, from which the other members copy it.
// Therefore only the output must be symmetric.
extern constexpr Algorithm symmetric_all_gather{
    .name = "symmetric_all_gather",
    .operation = Operation::all_gather,
    .forms = CallDescriptor::symmetric,
    .is_symmetric = [](const Call& call,
                       const void* group) { return lies_in_window(call.out.window, group); },
    .payload = payload_of_offsets,
    .first = {.publish =
                  [](const Group& group, const Step& step) {
                    const Call& call = step.call;
                    const auto self = static_cast<std::int64_t>(group.self);
                    copy_bytes(element(call.out, self * call.in.count), call.in.data,
                               static_cast<std::size_t>(call.in.bytes()));
                    publish_offsets(group, step);
                  },
              .read =
                  [](const Group& group, const Step& step) {
                    const auto block = static_cast<std::size_t>(step.call.in.bytes());
                    // Each member begins with another one, so that they do not all read the memory
                    // of the same member at once.
                    for (std::size_t n = 1; n < group.size; ++n) {
                      const std::size_t k = (group.self + n) % group.size;
                      copy_bytes(step.call.out.data + k * block,
                                 output_of(group, step, k) + k * block, block);
                    }
                  }},
    .second = Phase{},
};

}  // namespace rankmesh::shm
