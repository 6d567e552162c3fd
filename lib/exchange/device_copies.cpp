// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_copies.hpp"

#include <utility>

#include "detail/device_memory.hpp"
#include "device/kernels/load.hpp"

namespace rankmesh::exchange::detail {
namespace {

// Longer rows are worth a copy of CUDA each.
constexpr std::int64_t most_bytes_of_kernel = 16 << 10;

}  // namespace

void DeviceCopies::add(std::size_t tensor, const ArrayView& from, const ArrayView& to,
                       const Strip& strip) {
  const std::int64_t width = from.width();
  if (from.is_dense() && to.is_dense())
    return add(tensor, {to.at(strip.target), from.at(strip.source), strip.length * width,
                        strip.count, strip.target_step * width, strip.source_step * width});
  for (std::int64_t i = 0; i < strip.count; ++i) {
    std::int64_t target = strip.target + i * strip.target_step;
    from.for_each(strip.source + i * strip.source_step, strip.length,
                  [&](const std::byte* source, std::int64_t n) {
                    to.for_each(target, n, [&](std::byte* data, std::int64_t m) {
                      add(tensor, {data, source, m * width});
                      source += m * width;
                    });
                    target += n;
                  });
  }
}

// Continues the last copy if the rows continue its rows.
void DeviceCopies::add(std::size_t tensor, device::RowsToMove rows) {
  if (rows.to_step == rows.bytes && rows.from_step == rows.bytes) {
    rows.bytes *= rows.count;
    rows.count = 1;
  }
  const bool is_other_tensor = std::exchange(last_tensor_, tensor) != tensor;
  if (list_.empty() || is_other_tensor) return list_.push_back(rows);
  device::RowsToMove& last = list_.back();
  const std::int64_t to_step = rows.to - last.to, from_step = rows.from - last.from;
  if (last.count == 1 && rows.count == 1 && to_step == last.bytes && from_step == last.bytes) {
    last.bytes += rows.bytes;
    return;
  }
  if (last.count == 1) {
    last.to_step = to_step;
    last.from_step = from_step;
  }
  const bool has_steps =
      rows.count == 1 || (rows.to_step == last.to_step && rows.from_step == last.from_step);
  if (rows.bytes == last.bytes && has_steps && to_step == last.count * last.to_step &&
      from_step == last.count * last.from_step)
    last.count += rows.count;
  else
    list_.push_back(rows);
}

void DeviceCopies::queue(StreamRef stream) {
  std::vector<device::RowsToMove> short_rows;
  for (const device::RowsToMove& rows : list_)
    if (rows.bytes <= most_bytes_of_kernel && device::has_kernels())
      short_rows.push_back(rows);
    else
      copy_rows_in_order(rows.to, rows.to_step, rows.from, rows.from_step, rows.bytes, rows.count,
                         stream);
  list_.clear();
  if (!short_rows.empty()) device::launch(short_rows, stream);
}

}  // namespace rankmesh::exchange::detail
