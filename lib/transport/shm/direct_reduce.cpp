// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/direct_reads.hpp"

namespace rankmesh::shm {

// For large messages: for each piece, every member reduces its part of the inputs of all members
// into its slot, and the root copies the parts. All members wait for the second phase, because it
// says that the other members have finished reading their inputs. Two members are faster through
// their slots: the system copies what a member reads, and there is little work to share.
extern constexpr Algorithm direct_reduce{
    .name = "direct_reduce",
    .operation = Operation::reduce,
    .applies =
        [](const Group& group, const Call& call) {
          return group.size > 2 && reads_directly(group, call.in.bytes());
        },
    .payload = payload_of_rows,
    .first = {.publish = publish_address, .read = reduce_part},
    .second = Phase{.read =
                        [](const Group& group, const Step& step) {
                          if (is_root(group, step.call))
                            collect_parts(group, step, step.call.out.data);
                        }},
    .is_direct = true,
};

}  // namespace rankmesh::shm
