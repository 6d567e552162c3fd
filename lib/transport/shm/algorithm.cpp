// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/algorithm.hpp"

#include <algorithm>

#include "transport/detail/reduce_kernels.hpp"

namespace rankmesh::shm {

void reduce_sources(const Group& group, const Call& call, std::byte* out, std::int64_t count) {
  detail::reduce(call.out.type, call.reduction, out, group.sources.get(),
                 static_cast<int>(group.size), count);
}

// A member writes its share while the other members still use their shares. If two shares had a
// cache line in common, every store would transfer this line between their cores.
Share share_of(std::size_t members, std::size_t member, std::int64_t count, DataType type) {
  const auto per_line = static_cast<std::int64_t>(64 / size_of(type));
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const auto edge = [&](std::size_t k) {
    return std::min(count, lines * static_cast<std::int64_t>(k) /
                               static_cast<std::int64_t>(members) * per_line);
  };
  const std::int64_t begin = edge(member);
  return {begin, edge(member + 1) - begin};
}

}  // namespace rankmesh::shm
