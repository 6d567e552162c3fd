// SPDX-License-Identifier: BSD-3-Clause
#include "detail/scratch_call.hpp"

#include <cstring>

#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh::detail {
namespace {

// Calls use(place in the array, place in the packed blocks, bytes) for every contiguous piece of a
// block along an axis. Places are in bytes. For 2 members A and B and blocks of 3 rows:
//   array:  A0 B0 A1 B1 A2 B2      packed:  A0 A1 A2 B0 B1 B2
template <class Use>
void for_each_piece(const ConstBuffer& array, const Blocks* blocks, std::int64_t rows,
                    std::int64_t size, Use&& use) {
  const std::int64_t equal = array.count / size;
  for (std::int64_t k = 0; k < size; ++k) {
    const ConstBuffer block = blocks != nullptr
                                  ? block_of(array, blocks, static_cast<std::size_t>(k))
                                  : array.slice(k * equal, equal);
    const std::int64_t packed = block.data - array.data;
    const std::int64_t piece = block.bytes() / rows;
    for (std::int64_t row = 0; piece != 0 && row < rows; ++row)
      use(row * (array.bytes() / rows) + packed / rows, packed + row * piece,
          static_cast<std::size_t>(piece));
  }
}

}  // namespace

ScratchCall::ScratchCall(const Call& call, RankInGroup self, std::int64_t size)
    : original_{call},
      plain_{original_.call},
      size_{size},
      has_result_{has_output(call.operation, call.root == self)} {
  plain_.original = &original_.call;
  plain_.rows = 1;
  plain_.in.window = nullptr;  // scratch memory is not symmetric
  plain_.out.window = nullptr;
  if (rows_in(call) > 1 && has_input(call.operation, call.root == self)) {
    in_blocks_.resize(static_cast<std::size_t>(call.in.bytes()));
    for_each_piece(call.in, call.in_blocks, rows_in(call), size,
                   [&](std::int64_t at, std::int64_t packed, std::size_t bytes) {
                     std::memcpy(in_blocks_.data() + packed, call.in.data + at, bytes);
                   });
    plain_.in.data = in_blocks_.data();
  }
  if (rows_out(call) > 1 && has_result_) {
    out_blocks_.resize(static_cast<std::size_t>(call.out.bytes()));
    plain_.out.data = out_blocks_.data();
  }
  if (is_narrow_float(call.in.type) && reduces(call.operation)) widen_all();
}

// Replaces the buffers by float32 copies. It runs after the blocks were packed, so it reads the
// packed input. finish() then has no blocks to unpack, because the output of a reduction along an
// axis is a single block.
void ScratchCall::widen_all() {
  const ConstBuffer in = plain_.in;
  // On ranks without a result `out` may be null, and nothing must be allocated for it.
  const Buffer out = plain_.out.slice(0, has_result_ ? plain_.out.count : 0);
  out_.resize(static_cast<std::size_t>(out.count));
  plain_.out = {reinterpret_cast<std::byte*>(out_.data()), out.count, DataType::float32};
  if (in.data == out.data && in.count == out.count && out.count > 0) {  // in place
    widen(in.type, in.data, out_);
    plain_.in = plain_.out.as_input();
    return;
  }
  in_.resize(static_cast<std::size_t>(in.count));
  widen(in.type, in.data, in_);
  plain_.in = {reinterpret_cast<const std::byte*>(in_.data()), in.count, DataType::float32};
}

void ScratchCall::finish() {
  const Call& call = original_.call;
  if (plain_.out.type != call.out.type) return narrow(call.out.type, out_, call.out.data);
  if (out_blocks_.empty()) return;
  for_each_piece(call.out.as_input(), call.out_blocks, rows_out(call), size_,
                 [&](std::int64_t at, std::int64_t packed, std::size_t bytes) {
                   std::memcpy(call.out.data + at, out_blocks_.data() + packed, bytes);
                 });
}

}  // namespace rankmesh::detail
