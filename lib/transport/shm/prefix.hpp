// SPDX-License-Identifier: BSD-3-Clause
// The algorithms of prefix reductions.
#pragma once

#include <cstring>

#include "transport/detail/reduce_kernels.hpp"
#include "transport/shm/one_step.hpp"

namespace rankmesh::shm {

/// Reduces the inputs of the first `members` members. Without members, the result is zero.
inline void reduce_first(const Group& group, const Step& step, std::size_t members) {
  const Call& call = step.call;
  std::byte* out = element(call.out, step.at);
  if (members == 0) {
    std::memset(out, 0, step.bytes);
    return;
  }
  group.set_sources(step);
  group.sources[group.self] = element(call.in, step.at);
  detail::reduce(call.out.type, call.reduction, out, group.sources.get(), static_cast<int>(members),
                 step.count);
}

/// Every member publishes its input, and reduces the inputs of the members before it and, if `own`
/// is 1, its own. It waits for all members, although it does not need the inputs of the later ones.
template <Operation operation, std::size_t own>
inline constexpr Algorithm prefix{
    .name = facts_of(operation).name,
    .operation = operation,
    .payload = payload_of_input,
    .first = {.publish = publish_input,
              .read = [](const Group& group,
                         const Step& step) { reduce_first(group, step, group.self + own); }},
    .run_small = run_in_one_step<prefix<operation, own>>,
};

}  // namespace rankmesh::shm
