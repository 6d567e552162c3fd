// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/direct_reads.hpp"

namespace rankmesh::shm {

// For large messages: every member reduces its part of each piece from the inputs of all into its
// slot, then copies the parts of the others. In place this is safe: a member writes a piece of its
// output only after all have finished reading the inputs of this piece.
extern constexpr Algorithm direct_all_reduce{
    .name = "direct_all_reduce",
    .operation = Operation::all_reduce,
    .applies = [](const Group& group,
                  const Call& call) { return reads_directly(group, call.in.bytes()); },
    .payload = payload_of_rows,
    .first = {.publish = publish_address, .read = reduce_part},
    .second =
        Phase{.read = [](const Group& group,
                         const Step& step) { collect_parts(group, step, step.call.out.data); }},
    .is_direct = true,
};

}  // namespace rankmesh::shm
