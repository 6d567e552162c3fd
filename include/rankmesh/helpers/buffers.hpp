// SPDX-License-Identifier: BSD-3-Clause
// One buffer or a list of buffers, as an argument of the helpers.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>

#include "rankmesh/base/memory.hpp"

namespace rankmesh {

/// A list of buffers, for example `std::vector<std::vector<float>>` or a list of std::span.
template <class R>
concept BufferList =
    std::ranges::forward_range<R> && !Memory<R> && Memory<std::ranges::range_reference_t<R>>;
/// One buffer or a list of buffers.
template <class R>
concept Buffers = Memory<R> || BufferList<R>;

/// Calls `f(buffer, number)` for each buffer. A single buffer has the number 0.
template <Buffers R, class F>
void for_each_buffer(R&& buffers, F&& f) {
  if constexpr (Memory<R>) {
    f(buffers, std::size_t{0});
  } else {
    std::size_t number = 0;
    for (auto&& buffer : buffers) f(buffer, number++);
  }
}

}  // namespace rankmesh
