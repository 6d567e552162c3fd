// SPDX-License-Identifier: BSD-3-Clause
#include "detail/staged_call.hpp"

#include <algorithm>
#include <cstring>

#include "detail/call_errors.hpp"

namespace rankmesh::detail {
namespace {

// The bytes from the begin of a buffer to the end of its last block.
std::size_t extent(const ConstBuffer& buffer, const Blocks* blocks, std::int64_t members) {
  if (buffer.data == nullptr) return 0;
  if (blocks == nullptr) return static_cast<std::size_t>(buffer.bytes());
  std::size_t end = 0;
  for (std::size_t k = 0; k < std::min(blocks->counts().size(), static_cast<std::size_t>(members));
       ++k) {
    const ConstBuffer block = block_of(buffer, blocks, k);
    if (block.count > 0)
      end = std::max(end, static_cast<std::size_t>(block.data - buffer.data + block.bytes()));
  }
  return end;
}

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

// A member may pass anything for a buffer that only the root has.
StagedCall::StagedCall(const Call& call, RankInGroup self, std::int64_t size,
                       const std::function<std::unique_ptr<Pending>(const Call&)>& start)
    : original_{call},
      size_{size},
      has_output_{call.operation == Operation::broadcast
                      ? call.root != self
                      : has_output(call.operation, call.root == self)},
      out_(has_output_ || call.operation == Operation::broadcast
               ? extent(call.out.as_input(), call.out_blocks, size)
               : 0) {
  copy_bytes(out_.data(), call.out.data, out_.size());
  Call staged = original_.call;
  if (!out_.empty()) staged.out.data = out_.data();
  const std::size_t bytes =
      has_input(call.operation, call.root == self) ? extent(call.in, call.in_blocks, size) : 0;
  const std::less_equal<const std::byte*> before;
  const bool is_in_place = bytes > 0 && !out_.empty() && before(call.out.data, call.in.data) &&
                           before(call.in.data + bytes, call.out.data + out_.size());
  if (is_in_place) {
    staged.in.data = out_.data() + (call.in.data - call.out.data);
  } else if (bytes > 0) {
    in_.assign(call.in.data, call.in.data + bytes);
    staged.in.data = in_.data();
  }
  carried_ = start(staged);
}

// Between the blocks, the caller's memory stays as it is.
bool StagedCall::test() {
  if (is_complete_) return true;
  if (!carried_->test()) return false;
  is_complete_ = true;
  if (!has_output_ || carried_->was_cancelled()) return true;
  const Call& call = original_.call;
  if (call.out_blocks == nullptr) {
    copy_bytes(call.out.data, out_.data(), out_.size());
    return true;
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(size_); ++k) {
    const Buffer block = block_of(call.out, call.out_blocks, k);
    if (block.count > 0)
      copy_bytes(block.data, out_.data() + (block.data - call.out.data),
                 static_cast<std::size_t>(block.bytes()));
  }
  return true;
}

}  // namespace rankmesh::detail
