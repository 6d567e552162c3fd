// SPDX-License-Identifier: BSD-3-Clause
// Copies lists of rows.
#include "exchange/kernels/move_rows.hpp"

#include <algorithm>

#include "base/detail/private_api.hpp"
#include "device/kernels/launch.cuh"
#include "device/kernels/load.hpp"

namespace rankmesh::device {
namespace {

// The argument of one launch. CUDA allows 4 KiB.
struct MoveRows {
  static constexpr int most = 64;
  RowsToMove lists[most];
  std::int64_t first[most];  // the number of the first row of each list
  int count = 0;             // of lists
  std::int64_t rows = 0;     // of all lists
  std::int64_t longest = 0;  // row, in bytes
};
static_assert(sizeof(MoveRows) <= 4096);

// Word is the widest type that divides all addresses, distances and lengths.
template <class Word>
__global__ void move_rows(MoveRows work) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  // The blocks that share a row take turns at the words of a row of threads.
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  const std::int64_t shared = static_cast<std::int64_t>(gridDim.y) * blockDim.x;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
       row < work.rows; row += step) {
    int list = 0;
    for (int end = work.count; end - list > 1;) {
      const int middle = (list + end) / 2;
      (work.first[middle] <= row ? list : end) = middle;
    }
    const RowsToMove& rows = work.lists[list];
    const std::int64_t number = row - work.first[list];
    const Word* from = reinterpret_cast<const Word*>(rows.from + number * rows.from_step);
    Word* to = reinterpret_cast<Word*>(rows.to + number * rows.to_step);
    const std::int64_t words = rows.bytes / static_cast<std::int64_t>(sizeof(Word));
    for (std::int64_t w = first; w < words; w += shared) to[w] = from[w];
  }
}

template <class Word>
bool fits(const RowsToMove& rows) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Word));
  return rows.bytes % size == 0 && rows.to_step % size == 0 && rows.from_step % size == 0 &&
         is_aligned<Word>(rows.to) && is_aligned<Word>(rows.from);
}

int word_of(const RowsToMove& rows) {
  if (fits<uint4>(rows)) return sizeof(uint4);
  if (fits<std::uint32_t>(rows)) return sizeof(std::uint32_t);
  return fits<std::uint16_t>(rows) ? sizeof(std::uint16_t) : sizeof(std::uint8_t);
}

// Collects lists of one width of words, and launches them when there are 64.
template <class Word>
class Launches {
 public:
  explicit Launches(StreamRef stream) : stream_{stream} {}
  void add(const RowsToMove& rows) {
    work_.lists[work_.count] = rows;
    work_.first[work_.count] = work_.rows;
    work_.rows += rows.count;
    work_.longest = std::max(work_.longest, rows.bytes);
    if (++work_.count == MoveRows::most) end();
  }
  void end() {
    if (work_.count > 0)
      start_with_rows(move_rows<Word>, "move_rows",
                      work_.longest / static_cast<std::int64_t>(sizeof(Word)), work_.rows, work_,
                      stream_);
    work_.count = 0;
    work_.rows = work_.longest = 0;
  }

 private:
  StreamRef stream_;
  MoveRows work_;
};

const KernelsToLoad move_row_kernels{[]() noexcept {
  load(move_rows<uint4>);
  load(move_rows<std::uint32_t>);
  load(move_rows<std::uint16_t>);
  load(move_rows<std::uint8_t>);
}};

}  // namespace

RANKMESH_PRIVATE_API void launch(std::span<const RowsToMove> lists, StreamRef stream) {
  Launches<uint4> widest{stream};
  Launches<std::uint32_t> words{stream};
  Launches<std::uint16_t> pairs{stream};
  Launches<std::uint8_t> bytes{stream};
  for (const RowsToMove& rows : lists) {
    const int word = word_of(rows);
    if (word == sizeof(uint4))
      widest.add(rows);
    else if (word == sizeof(std::uint32_t))
      words.add(rows);
    else if (word == sizeof(std::uint16_t))
      pairs.add(rows);
    else
      bytes.add(rows);
  }
  widest.end();
  words.end();
  pairs.end();
  bytes.end();
}

}  // namespace rankmesh::device
