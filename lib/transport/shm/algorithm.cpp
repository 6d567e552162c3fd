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
Share share_of(const Group& group, std::size_t member, std::int64_t count, DataType type) {
  const auto per_line = static_cast<std::int64_t>(64 / size_of(type));
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const auto edge = [&](std::size_t k) {
    return std::min(count, lines * static_cast<std::int64_t>(k) /
                               static_cast<std::int64_t>(group.size) * per_line);
  };
  const std::int64_t begin = edge(member);
  return {begin, edge(member + 1) - begin};
}

void publish_blocks(const Group& group, const Step& step) {
  const ConstBuffer& in = step.call.in;
  const std::size_t block = step.bytes / group.size;
  const std::int64_t blocks_apart = in.count / static_cast<std::int64_t>(group.size);
  std::byte* to = group.payload(group.self, step);
  for (std::size_t k = 0; k < group.size; ++k)
    copy_bytes(to + k * block, element(in, static_cast<std::int64_t>(k) * blocks_apart + step.at),
               block);
}

void collect_blocks(const Group& group, const Step& step) {
  const Call& call = step.call;
  for (std::size_t k = 0; k < group.size; ++k) {
    const std::byte* from = k == group.self ? element(call.in, step.at) : group.payload(k, step);
    copy_bytes(element(call.out, static_cast<std::int64_t>(k) * call.in.count + step.at), from,
               step.bytes);
  }
}

}  // namespace rankmesh::shm
