// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

// Every member other than the root publishes its input. The root reduces all of them.
extern constexpr Algorithm reduce{
    .name = "reduce",
    .operation = Operation::reduce,
    .payload = payload_of_input,
    .first = {.flow = Flow::all_to_root,
              .publish = publish_input,
              .read =
                  [](const Group& group, const Step& step) {
                    const Call& call = step.call;
                    if (!is_root(group, call)) return;
                    group.set_sources(step);
                    group.sources[group.self] = element(call.in, step.at);
                    reduce_sources(group, call, element(call.out, step.at), step.count);
                  }},
    .run_small = run_in_one_step<reduce>,
};

}  // namespace rankmesh::shm
