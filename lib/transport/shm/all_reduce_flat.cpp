// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// For small messages: every member publishes its input and reduces the inputs of all. This repeats
// the arithmetic on every member, but takes only one step. For small messages, the steps are most
// of the cost.
extern constexpr Algorithm all_reduce_flat{
    .name = "all_reduce_flat",
    .operation = Operation::all_reduce,
    .applies = [](const Group& group,
                  const Call& call) { return call.out.bytes() <= group.limits.flat_bytes; },
    .payload = payload_of_output,
    .first = {.publish = publish_input,
              .read =
                  [](const Group& group, const Step& step) {
                    const Call& call = step.call;
                    group.set_sources(step);
                    group.sources[group.self] = call.in.data;
                    reduce_sources(group, call, call.out.data, step.count);
                  }},
    .run_small = run_in_one_step<all_reduce_flat>,
};

}  // namespace rankmesh::shm
