// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/symmetric.hpp"

namespace rankmesh::shm {

// Every member copies its blocks from the inputs of all members. The algorithm cannot work in
// place, because a member would overwrite blocks that other members have not copied yet.
extern constexpr Algorithm symmetric_all_to_all{
    .name = "symmetric_all_to_all",
    .operation = Operation::all_to_all,
    .forms = CallDescriptor::symmetric,
    .is_symmetric =
        [](const Call& call, const void* group) {
          return lies_in_window(call.in.window, group) && call.in.data != call.out.data;
        },
    .payload = payload_of_offsets,
    .first = {.publish = publish_offsets,
              .read =
                  [](const Group& group, const Step& step) {
                    const auto block = static_cast<std::size_t>(step.call.in.bytes()) / group.size;
                    for (std::size_t n = 0; n < group.size; ++n) {
                      const std::size_t k = (group.self + n) % group.size;
                      copy_bytes(step.call.out.data + k * block,
                                 input_of(group, step, k) + group.self * block, block);
                    }
                  }},
    .second = Phase{},
};

}  // namespace rankmesh::shm
