// SPDX-License-Identifier: BSD-3-Clause
#include "detail/fill.hpp"

#include <algorithm>
#include <numeric>

namespace rankmesh::detail {

// The loads of the least loaded workers are raised to a common level (water filling).
std::vector<std::int64_t> fill(std::span<const std::int64_t> loads, std::int64_t amount) {
  const auto workers = static_cast<std::int64_t>(loads.size());
  std::vector<std::int64_t> result(loads.size(), 0);
  const auto [least, most] = std::ranges::minmax_element(loads);
  if (*least == *most) {
    for (std::int64_t w = 0; w < workers; ++w)
      result[static_cast<std::size_t>(w)] = amount / workers + (w < amount % workers ? 1 : 0);
    return result;
  }
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t w) { return loads[w]; });
  std::int64_t sum = amount;  // of the raised workers' final loads
  std::size_t raised = 0;
  while (raised < order.size() && sum > loads[order[raised]] * static_cast<std::int64_t>(raised)) {
    sum += loads[order[raised]];
    ++raised;
  }
  if (raised == 0) return result;  // nothing to divide
  const auto count = static_cast<std::int64_t>(raised);
  std::int64_t rest = sum % count;
  std::ranges::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(raised));
  for (std::size_t i = 0; i < raised; ++i) {
    const std::size_t w = order[i];
    result[w] = sum / count - loads[w];
    if (rest > 0) {
      ++result[w];
      --rest;
    }
  }
  return result;
}

}  // namespace rankmesh::detail
