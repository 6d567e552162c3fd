// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/symmetric.hpp"

namespace rankmesh::shm {

// Every member reduces its block of all inputs.
extern constexpr Algorithm symmetric_reduce_scatter{
    .name = "symmetric_reduce_scatter",
    .operation = Operation::reduce_scatter,
    .forms = CallDescriptor::symmetric,
    .is_symmetric = [](const Call& call,
                       const void* group) { return lies_in_window(call.in.window, group); },
    .payload = payload_of_offsets,
    .first = {.publish = publish_offsets,
              .read =
                  [](const Group& group, const Step& step) {
                    const Call& call = step.call;
                    const auto offset = group.self * static_cast<std::size_t>(call.out.bytes());
                    for (std::size_t k = 0; k < group.size; ++k)
                      group.sources[k] = input_of(group, step, k) + offset;
                    reduce_sources(group, call, call.out.data, call.out.count);
                  }},
    .second = Phase{},
};

}  // namespace rankmesh::shm
