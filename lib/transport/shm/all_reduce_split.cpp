// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/algorithm.hpp"

namespace rankmesh::shm {
namespace {

std::size_t bytes_of(const Share& share, const Call& call) {
  return static_cast<std::size_t>(share.count) * size_of(call.out.type);
}
std::size_t offset_of(const Share& share, const Call& call) {
  return static_cast<std::size_t>(share.begin) * size_of(call.out.type);
}

}  // namespace

// For large messages: every member reduces one share of all payloads, then copies the shares of the
// others.
//
// The result of a share replaces the share in the member's own payload. This is safe while the
// others still read that payload, because each of them reads only its own share of it. The second
// phase publishes no bytes: its number says that the member's share in the payload of the first
// phase is now the result. Therefore payloads must stay valid for one step after their own step.
extern constexpr Algorithm all_reduce_split{
    .name = "all_reduce_split",
    .operation = Operation::all_reduce,
    .payload = payload_of_output,
    .first = {.publish = publish_input,
              .read =
                  [](const Group& group, const Step& step) {
                    const Call& call = step.call;
                    const Share share = share_of(group.size, group.self, step.count, call.out.type);
                    const std::size_t offset = offset_of(share, call);
                    group.set_sources(step, offset);
                    reduce_sources(group, call, group.payload(group.self, step) + offset,
                                   share.count);
                  }},
    .second = Phase{.read =
                        [](const Group& group, const Step& step) {
                          const Call& call = step.call;
                          std::byte* out = element(call.out, step.at);
                          for (std::size_t k = 0; k < group.size; ++k) {
                            const Share share = share_of(group.size, k, step.count, call.out.type);
                            const std::size_t offset = offset_of(share, call);
                            copy_bytes(out + offset, group.previous_payload(k, step) + offset,
                                       bytes_of(share, call));
                          }
                        }},
};

}  // namespace rankmesh::shm
