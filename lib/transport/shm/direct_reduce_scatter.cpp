// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/direct_reads.hpp"

namespace rankmesh::shm {

// For large messages: every member reduces its block from the inputs of all into its output. The
// second phase has no payload; it says that the other members have finished reading this member's
// input.
extern constexpr Algorithm direct_reduce_scatter{
    .name = "direct_reduce_scatter",
    .operation = Operation::reduce_scatter,
    .applies = [](const Group& group,
                  const Call& call) { return reads_directly(group, call.in.bytes()); },
    .payload =
        [](const Group&, const Call&) {
          return Payload{1, sizeof(std::uint64_t)};
        },
    .first = {.publish = publish_address,
              .read =
                  [](const Group& group, const Step& step) {
                    const Call& call = step.call;
                    take_addresses(group, step);
                    (void)reduce_inputs(group, call,
                                        static_cast<std::int64_t>(group.self) * call.out.count,
                                        call.out.count, call.out.data);
                  }},
    .second = Phase{},
    .is_direct = true,
};

}  // namespace rankmesh::shm
