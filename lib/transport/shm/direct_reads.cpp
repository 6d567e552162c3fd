// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/direct_reads.hpp"

#include <algorithm>
#include <cstring>

namespace rankmesh::shm {
namespace {

// Reads a part of the input of another member.
bool read(const Group& group, std::size_t member, std::size_t offset, std::byte* to,
          std::size_t bytes) {
  DirectReads& direct = *group.direct;
  const int code =
      direct.reader.read(group.locals[member], direct.addresses[member] + offset, to, bytes);
  // Acquire: a member announces that it gives up or leaves before it changes its buffer. Therefore
  // a member that has read the changed buffer also sees the announcement.
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool has_ended =
      group.areas.front().finding().state() != Finding::none ||
      group.areas[member].presence().closed_after.load(std::memory_order_relaxed) != 0;
  if (code == 0 && !has_ended) [[likely]]
    return true;
  direct.failure = FailedRead{member, has_ended ? 0 : code};
  return false;
}

}  // namespace

bool reads_directly(const Group& group, std::int64_t bytes) {
  return bytes >= group.limits.direct_bytes &&
         // The first piece must not overlap the memory in which the address is published.
         bytes > static_cast<std::int64_t>(inline_bytes * group.size);
}

void publish_address(const Group& group, const Step& step) {
  if (step.at != 0) return;
  const auto address = reinterpret_cast<std::uint64_t>(step.call.in.data);
  std::memcpy(group.areas[group.self].header(step.number).payload, &address, sizeof address);
}

void take_addresses(const Group& group, const Step& step) {
  if (step.at != 0) return;
  for (std::size_t k = 0; k < group.size; ++k)
    std::memcpy(&group.direct->addresses[k], group.areas[k].header(step.number).payload,
                sizeof(std::uint64_t));
}

bool reduce_inputs(const Group& group, const Call& call, std::int64_t first, std::int64_t count,
                   std::byte* out) {
  DirectReads& direct = *group.direct;
  const std::size_t unit = size_of(call.in.type);
  const auto most = static_cast<std::int64_t>(DirectReads::piece_bytes / unit);
  for (std::int64_t done = 0; done < count; done += most) {
    const std::int64_t piece = std::min(most, count - done);
    const auto offset = static_cast<std::size_t>(first + done) * unit;
    const std::size_t bytes = static_cast<std::size_t>(piece) * unit;
    group.sources[group.self] = call.in.data + offset;
    // Each member begins with another one, so that they do not all read the same member at once.
    for (std::size_t n = 1; n < group.size; ++n) {
      const std::size_t k = (group.self + n) % group.size;
      std::byte* const to = direct.scratch.get() + k * DirectReads::piece_bytes;
      if (!read(group, k, offset, to, bytes)) return false;
      group.sources[k] = to;
    }
    reduce_sources(group, call, out + static_cast<std::size_t>(done) * unit, piece);
  }
  return true;
}

}  // namespace rankmesh::shm
