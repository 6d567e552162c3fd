// SPDX-License-Identifier: BSD-3-Clause
// The work of expert dispatchers on rows in host memory.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "exchange/kernels/expert_rows.hpp"
#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh::device {
namespace {

const std::byte* row_of(const GatherRows& work, std::int64_t index) {
  return index < work.split ? work.from + index * work.row_bytes
                            : work.other + (index - work.split) / work.share * work.row_bytes;
}
const std::byte* row_of(const WeightedSum& work, std::int64_t index, std::int64_t row_bytes) {
  return index < work.split ? work.from + index * row_bytes
                            : work.other + (index - work.split) * row_bytes;
}

// Computes the sums of rows of Value in the type Sum. If both types are equal, the sums are formed
// in the output. Otherwise they are formed in a buffer that fits in the nearest cache.
template <class Value, class Sum>
void weighted_sum(const WeightedSum& work) {
  constexpr std::int64_t stretch = 512;
  constexpr bool in_place = std::is_same_v<Value, Sum>;
  std::array<Sum, in_place ? 0 : stretch> aside;
  const auto row_bytes = work.row_elements * static_cast<std::int64_t>(sizeof(Value));
  for (std::int64_t t = 0; t < work.tokens; ++t) {
    auto* to = reinterpret_cast<Value*>(work.to + t * row_bytes);
    for (std::int64_t begin = 0; begin < work.row_elements; begin += stretch, to += stretch) {
      const auto n = static_cast<std::size_t>(std::min(stretch, work.row_elements - begin));
      Sum* sums = nullptr;
      if constexpr (in_place)
        sums = to;
      else
        sums = aside.data();
      bool is_first = true;
      for (std::int64_t j = t * work.top_k; j < (t + 1) * work.top_k; ++j) {
        if (work.index[j] < 0) continue;
        const Sum weight = work.has_weights_of_type
                               ? static_cast<Sum>(static_cast<const Value*>(work.weight)[j])
                               : static_cast<Sum>(static_cast<const float*>(work.weight)[j]);
        const auto* row =
            reinterpret_cast<const Value*>(row_of(work, work.index[j], row_bytes)) + begin;
        if (std::exchange(is_first, false))
          for (std::size_t h = 0; h < n; ++h) sums[h] = Sum{0} + weight * static_cast<Sum>(row[h]);
        else
          for (std::size_t h = 0; h < n; ++h) sums[h] += weight * static_cast<Sum>(row[h]);
      }
      if (is_first) std::fill_n(sums, n, Sum{0});
      if constexpr (!in_place)
        for (std::size_t h = 0; h < n; ++h) to[h] = Value{sums[h]};
    }
  }
}

}  // namespace

void run_on_host(const GatherRows& work) {
  const auto bytes = static_cast<std::size_t>(work.row_bytes);
  if (bytes == 0) return;
  for (std::int64_t i = 0; i < work.rows; ++i) {
    std::byte* to = work.to + i * work.row_bytes;
    if (work.index[i] >= 0)
      std::memcpy(to, row_of(work, work.index[i]), bytes);
    else if (work.index[i] == GatherRows::zeros)
      std::memset(to, 0, bytes);
  }
}

void run_on_host(const WeightedSum& work) {
  // The dispatcher rejects other types.
  visit(work.type, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>)
      weighted_sum<T, T>(work);
    else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
      weighted_sum<T, float>(work);
  });
}

}  // namespace rankmesh::device
