// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/symmetric.hpp"

#include <cstring>

namespace rankmesh::shm {
namespace {

// The value is copied and not accessed through a cast pointer, because an area holds bytes whose
// type changes from step to step.
BufferOffsets offsets_of(const Group& group, const Step& step, std::size_t member) {
  BufferOffsets offsets{};
  std::memcpy(&offsets, group.payload(member, step), sizeof offsets);
  return offsets;
}

}  // namespace

void publish_offsets(const Group& group, const Step& step) {
  const Call& call = step.call;
  BufferOffsets offsets{};
  if (call.in.window != nullptr)
    offsets.in = static_cast<std::uint64_t>(call.in.data - call.in.window->own());
  if (call.out.window != nullptr)
    offsets.out = static_cast<std::uint64_t>(call.out.data - call.out.window->own());
  std::memcpy(group.payload(group.self, step), &offsets, sizeof offsets);
}

const std::byte* input_of(const Group& group, const Step& step, std::size_t member) {
  return step.call.in.window->part(group.locals[member]) + offsets_of(group, step, member).in;
}

std::byte* output_of(const Group& group, const Step& step, std::size_t member) {
  return step.call.out.window->part(group.locals[member]) + offsets_of(group, step, member).out;
}

}  // namespace rankmesh::shm
