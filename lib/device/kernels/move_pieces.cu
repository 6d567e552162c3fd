// SPDX-License-Identifier: BSD-3-Clause
// Copies pieces between an array and the blocks of members.
#include "device/kernels/move_pieces.hpp"

#include "device/kernels/launch.cuh"
#include "device/kernels/load.hpp"

namespace rankmesh::device {
namespace {

// Word is the widest type that divides all addresses and the length of a piece.
template <class Word>
__global__ void move_pieces(MovePieces work) {
  const std::int64_t words = work.piece_bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t pieces = work.rows * work.members;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  // The blocks that share a row take turns at the words of a row of threads.
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  const std::int64_t shared = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       p < pieces; p += step) {
    const std::int64_t in_blocks = p % work.members * work.rows + p / work.members;
    const Word* from =
        reinterpret_cast<const Word*>(work.from) + (work.to_blocks ? p : in_blocks) * words;
    Word* to = reinterpret_cast<Word*>(work.to) + (work.to_blocks ? in_blocks : p) * words;
    for (std::int64_t w = first; w < words; w += shared) to[w] = from[w];
  }
}

template <class Word>
bool fits(const MovePieces& work) {
  return work.piece_bytes % static_cast<std::int64_t>(sizeof(Word)) == 0 &&
         is_aligned<Word>(work.to) && is_aligned<Word>(work.from);
}

template <class Word>
void start_with(const MovePieces& work, StreamRef stream) {
  start_with_rows(move_pieces<Word>, "move_pieces",
                  work.piece_bytes / static_cast<std::int64_t>(sizeof(Word)),
                  work.rows * work.members, work, stream);
}

const KernelsToLoad move_piece_kernels{[]() noexcept {
  load(move_pieces<uint4>);
  load(move_pieces<std::uint32_t>);
  load(move_pieces<std::uint16_t>);
  load(move_pieces<std::uint8_t>);
}};

}  // namespace

void launch(const MovePieces& work, StreamRef stream) {
  if (work.rows == 0 || work.members == 0 || work.piece_bytes == 0) return;
  if (fits<uint4>(work))
    start_with<uint4>(work, stream);
  else if (fits<std::uint32_t>(work))
    start_with<std::uint32_t>(work, stream);
  else if (fits<std::uint16_t>(work))
    start_with<std::uint16_t>(work, stream);
  else
    start_with<std::uint8_t>(work, stream);
}

}  // namespace rankmesh::device
