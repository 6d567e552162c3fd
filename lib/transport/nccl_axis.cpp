// SPDX-License-Identifier: BSD-3-Clause
// Collectives on device memory along an axis other than the first.
#include <cstddef>

#include <fmt/format.h>

#include "device/kernels/load.hpp"
#include "device/kernels/move_pieces.hpp"
#include "device/stream_memory.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "transport/detail/nccl_transport.hpp"

namespace rankmesh {
namespace {

using device::MovePieces;

// CUDA copies pieces in two dimensions only if the rows of the array are short enough.
void require_copyable(const MovePieces& work, int device) {
  int most = 0;
  device::check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPitch, device),
                "cudaDeviceGetAttribute");
  const std::int64_t row = work.members * work.piece_bytes;
  if (row > most)
    throw UnsupportedError{
        fmt::format("an operation along an axis on device memory has rows of {} bytes, but CUDA "
                    "copies at most {} without a kernel of rankmesh",
                    row, most),
        "build rankmesh on a machine with nvcc, or exchange along the first axis"};
}

// One two-dimensional copy per member, for builds without kernels. Each row of a copy is one piece,
// so narrow pieces are slow.
void copy_pieces(const MovePieces& work, cudaStream_t stream) {
  const auto piece = static_cast<std::size_t>(work.piece_bytes);
  const std::size_t row = static_cast<std::size_t>(work.members) * piece;
  const std::size_t block = static_cast<std::size_t>(work.rows) * piece;
  for (std::size_t k = 0; k < static_cast<std::size_t>(work.members); ++k) {
    const std::size_t to = work.to_blocks ? k * block : k * piece;
    const std::size_t from = work.to_blocks ? k * piece : k * block;
    device::check(
        cudaMemcpy2DAsync(work.to + to, work.to_blocks ? piece : row, work.from + from,
                          work.to_blocks ? row : piece, piece, static_cast<std::size_t>(work.rows),
                          cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpy2DAsync");
  }
}

void move_pieces(const MovePieces& work, StreamRef stream) {
  if (device::has_kernels())
    device::launch(work, stream);
  else
    copy_pieces(work, static_cast<cudaStream_t>(stream.native()));
}

}  // namespace

// Each member's pieces are contiguous in its block, and `size` pieces apart in the whole array.
// NCCL sends or receives the blocks; the pieces are moved before or after.
void NcclTransport::issue_along_axis(const Call& call) {
  device::require_current(context_->claim.device());
  (void)device::is_captured(call.stream);
  const bool of_out = gathers(call.operation);
  const bool has_whole = !has_root(call.operation) || call.root.value() == rank_;
  Call plain = call;
  plain.rows = 1;
  plain.original = &call;
  // NCCL must not get registered memory for a message that has ordinary memory on the other side,
  // such as the blocks of the root.
  const bool has_copy =
      has_root(call.operation) && is_registered(of_out ? call.in.data : call.out.data);
  if (!has_whole && !has_copy) return issue(plain);

  const std::int64_t block = of_out ? call.in.bytes() : call.out.bytes();
  MovePieces move{
      .rows = call.rows, .members = size_, .piece_bytes = block / call.rows, .to_blocks = !of_out};
  if (has_whole && !device::has_kernels()) require_copyable(move, context_->claim.device());
  const auto bytes = static_cast<std::size_t>(block);
  const std::size_t whole = has_whole ? static_cast<std::size_t>(size_) * bytes : 0;
  auto* blocks = static_cast<std::byte*>(
      device::allocate_in_order(whole + (has_copy ? bytes : 0), call.stream));
  std::byte* const copy = blocks + whole;
  try {
    if (of_out) {
      if (has_copy) device::detail::copy_on_device(copy, call.in.data, bytes, call.stream);
      if (has_copy) plain.in.data = copy;
      if (has_whole) plain.out.data = blocks;
      issue(plain);
      move.to = call.out.data;
      move.from = blocks;
      if (has_whole) move_pieces(move, call.stream);
    } else {
      move.to = blocks;
      move.from = call.in.data;
      if (has_whole) move_pieces(move, call.stream);
      if (has_whole) plain.in.data = blocks;
      if (has_copy) plain.out.data = copy;
      issue(plain);
      if (has_copy) device::detail::copy_on_device(call.out.data, copy, bytes, call.stream);
    }
  } catch (...) {
    try {
      device::free_in_order(blocks, call.stream);
    } catch (const Error&) {
      // The first error says more; the memory stays allocated.
    }
    throw;
  }
  device::free_in_order(blocks, call.stream);
}

}  // namespace rankmesh
