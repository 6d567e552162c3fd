// SPDX-License-Identifier: BSD-3-Clause
// The kernels that copy rows and pieces: their results against those of the host, and their
// bandwidth against that of CUDA's own copies. One process; compute-sanitizer runs the first row
// too.
#include <cuda_runtime_api.h>

#include <array>
#include <cstring>
#include <random>

#include "device/kernels/move_pieces.hpp"
#include "exchange/kernels/move_rows.hpp"
#include "rankmesh/device/cuda.hpp"
#include "rankmesh/device/stream.hpp"
#include "row.hpp"

namespace gpu_rows {
namespace {

using rankmesh::device::check;
using rankmesh::device::DeviceBuffer;
using rankmesh::device::MovePieces;
using rankmesh::device::RowsToMove;
using rankmesh::device::Stream;
using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::mt19937& random, std::size_t count) {
  Bytes result(count);
  for (std::size_t i = 0; i < count; i += sizeof(std::uint32_t)) {
    const auto value = static_cast<std::uint32_t>(random());
    std::memcpy(&result[i], &value, std::min(sizeof value, count - i));
  }
  return result;
}

DeviceBuffer<std::byte> on_device(const Bytes& bytes) {
  return DeviceBuffer<std::byte>{std::span<const std::byte>{bytes}};
}

// ------------------------------------------------------------------------------------ the host's

void run_on_host(const MovePieces& work) {
  for (std::int64_t row = 0; row < work.rows; ++row)
    for (std::int64_t k = 0; k < work.members; ++k) {
      const std::int64_t in_array = (row * work.members + k) * work.piece_bytes;
      const std::int64_t in_blocks = (k * work.rows + row) * work.piece_bytes;
      std::memcpy(work.to + (work.to_blocks ? in_blocks : in_array),
                  work.from + (work.to_blocks ? in_array : in_blocks),
                  static_cast<std::size_t>(work.piece_bytes));
    }
}

// Lists of rows whose addresses are offsets.
struct Offsets {
  RowsToMove rows;
  std::int64_t to = 0, from = 0;
};

void run_on_host(const std::vector<RowsToMove>& lists) {
  for (const RowsToMove& rows : lists)
    for (std::int64_t i = 0; i < rows.count; ++i)
      std::memcpy(rows.to + i * rows.to_step, rows.from + i * rows.from_step,
                  static_cast<std::size_t>(rows.bytes));
}

MovePieces moved(MovePieces work, std::byte* to, const std::byte* from, std::int64_t shift) {
  work.to = to + shift;
  work.from = from + shift;
  return work;
}

std::vector<RowsToMove> moved(const std::vector<Offsets>& lists, std::byte* to,
                              const std::byte* from, std::int64_t shift) {
  std::vector<RowsToMove> result;
  for (const Offsets& list : lists) {
    result.push_back(list.rows);
    result.back().to = to + shift + list.to;
    result.back().from = from + shift + list.from;
  }
  return result;
}

// Runs the work on the host and on the device, and compares all bytes, also those between the rows.
template <class Work>
void compare(std::mt19937& random, const Work& work, std::size_t bytes, std::int64_t shift,
             const std::string& what) {
  const Bytes from = random_bytes(random, bytes + 16);
  Bytes expected(bytes + 16, std::byte{0x5a});
  const auto from_there = on_device(from);
  const auto there = on_device(expected);
  run_on_host(moved(work, expected.data(), from.data(), shift));
  const Stream stream = Stream::create();
  launch(moved(work, there.data(), from_there.data(), shift), stream);
  require(there.download(stream) == expected, what + " differs from the host's");
}

int pieces(std::mt19937& random) {
  int cases = 0;
  for (const std::int64_t piece : {1, 2, 3, 4, 6, 8, 12, 16, 48, 250, 4096, 4112, 70016, 1 << 20})
    for (const std::int64_t rows : {1, 3, 300})
      for (const std::int64_t members : {1, 2, 7})
        for (const std::int64_t shift : {0, 1, 4}) {
          if (rows * members * piece > (4 << 20)) continue;
          for (const bool to_blocks : {false, true}) {
            compare(
                random,
                MovePieces{
                    .rows = rows, .members = members, .piece_bytes = piece, .to_blocks = to_blocks},
                static_cast<std::size_t>(rows * members * piece), shift,
                fmt::format("a move of {} rows of {} pieces of {} bytes", rows, members, piece));
            ++cases;
          }
        }
  return cases;
}

// Lists of rows behind each other in the memory, with gaps. Few of the rows are long.
int row_lists(std::mt19937& random) {
  constexpr int cases = 40;
  for (int done = 0; done < cases; ++done) {
    std::vector<Offsets> list;
    std::int64_t to = 0;
    std::int64_t from = 0;
    const std::int64_t unit = std::array{1, 2, 4, 16}[random() % 4];
    const std::int64_t longest = std::array{64, 16384, 300000}[random() % 3];
    for (int i = 0; i < 1 + done * 4 && to < (2 << 20) && from < (2 << 20); ++i) {
      const auto upto = [&](std::int64_t most) {
        return static_cast<std::int64_t>(random()) % most / unit * unit;
      };
      const std::int64_t bytes = unit + upto(longest);
      const RowsToMove rows{.bytes = bytes,
                            .count = 1 + static_cast<std::int64_t>(random() % 5),
                            .to_step = bytes + upto(64),
                            .from_step = bytes + upto(64)};
      list.push_back({rows, to, from});
      to += rows.count * rows.to_step + upto(64);
      from += rows.count * rows.from_step + upto(64);
    }
    compare(random, list, static_cast<std::size_t>(std::max(to, from)), 0,
            fmt::format("a move of {} lists of rows", list.size()));
  }
  return cases;
}

int moves(const Arguments&) {
  std::mt19937 random{23};
  const int of_pieces = pieces(random);
  const int of_lists = row_lists(random);
  summarise("{} moves of pieces and {} of lists of rows equal the host's", of_pieces, of_lists);
  return 0;
}

// ----------------------------------------------------------------------------------- bandwidth

constexpr std::int64_t copied_bytes = std::int64_t{128} << 20;
constexpr int copies_at_once = 4;

// Returns the GB that are copied in a second.
double bandwidth(const Stream& stream, const std::function<void()>& queue) {
  const rankmesh::Deadline deadline{rankmesh::Deadline::Duration{60}};
  std::vector<double> times;
  const double first = now();
  for (int round = 0; round < 6 && (round < 2 || now() - first < 1); ++round) {
    const double begin = now();
    for (int i = 0; i < copies_at_once; ++i) queue();
    stream.wait(deadline);
    if (round > 0) times.push_back((now() - begin) / copies_at_once);
  }
  return static_cast<double>(copied_bytes) / median(times) / 1e9;
}

std::vector<Offsets> rows_of(std::int64_t bytes, std::int64_t gap) {
  return {{RowsToMove{.bytes = bytes - gap,
                      .count = copied_bytes / bytes,
                      .to_step = bytes - gap,
                      .from_step = bytes}}};
}

int copies(const Arguments&) {
  std::mt19937 random{29};
  const Bytes source = random_bytes(random, static_cast<std::size_t>(copied_bytes));
  const auto from = on_device(source);
  DeviceBuffer<std::byte> to{static_cast<std::size_t>(copied_bytes)};
  const Stream stream = Stream::create();
  const double own = bandwidth(stream, [&] {
    check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(copied_bytes),
                          cudaMemcpyDeviceToDevice, stream.native()),
          "cudaMemcpyAsync");
  });
  say("copies of {} MiB inside the device, GB/s (each byte is read and written):",
      copied_bytes >> 20);
  say("{:<44} {:8.1f}", "cudaMemcpyAsync", own);
  double worst = 1;
  std::string worst_name;
  const auto measure = [&](const std::string& name, const auto& work) {
    to.upload(Bytes(static_cast<std::size_t>(copied_bytes), std::byte{0x5a}), stream);
    const auto there = moved(work, to.data(), from.data(), 0);
    const double reached = bandwidth(stream, [&] { launch(there, stream); });
    Bytes expected(static_cast<std::size_t>(copied_bytes), std::byte{0x5a});
    run_on_host(moved(work, expected.data(), source.data(), 0));
    require(to.download(stream) == expected, name + ": the copy differs from the host's");
    say("{:<44} {:8.1f}  {:5.0f} %", name, reached, 100 * reached / own);
    if (worst_name.empty() || reached / own < worst) {
      worst = reached / own;
      worst_name = name;
    }
  };
  for (const std::int64_t rows : {1, 8, 1024, 1 << 17})
    measure(fmt::format("pieces: {} rows of 8 pieces", rows),
            MovePieces{.rows = rows, .members = 8, .piece_bytes = copied_bytes / rows / 8});
  for (const std::int64_t bytes :
       {copied_bytes / 2, copied_bytes / 8, std::int64_t{1} << 14, std::int64_t{512}})
    measure(fmt::format("rows: {} rows of {} bytes", copied_bytes / bytes, bytes - 16),
            rows_of(bytes, 16));
  summarise("the slowest kernel reaches {:.0f} % of cudaMemcpyAsync ({})", 100 * worst, worst_name);
  return 0;
}

const Register moves_row{"moves", moves};
const Register copies_row{"copies", copies};

}  // namespace
}  // namespace gpu_rows
