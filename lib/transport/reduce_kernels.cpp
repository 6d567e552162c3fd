// SPDX-License-Identifier: BSD-3-Clause
// Compiled with -O3 in every build type, so that the compiler vectorises the loops.
#include "detail/reduce_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace rankmesh::detail {
namespace {

// The type in which integers are added and multiplied. Overflow of signed integers is undefined, so
// they are computed as unsigned ones. 8-bit and 16-bit integers need it too: they would be promoted
// to int, and the product of two uint16 overflows an int.
template <class T>
struct Wrapping {
  using type = T;
};
template <class T>
  requires std::is_integral_v<T>
struct Wrapping<T> {
  using type = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
};

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
struct Prod {
  template <class T>
  static T apply(T a, T b) {
    using W = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};

// `out` is `a`, `b` or disjoint from both, so no iteration depends on another one. The pragma tells
// the compiler, which otherwise checks for overlap at run time.
template <class T, class Op>
void combine(T* out, const T* a, const T* b, std::int64_t count) {
#ifndef __clang__  // which has no such pragma, and checks at run time instead
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = Op::template apply<T>(a[i], b[i]);
}

// Integers are divided as 64-bit integers of the same sign, floats as themselves.
template <class T>
void divide(T* values, std::int64_t count, int by) {
  using Wide =
      std::conditional_t<std::is_floating_point_v<T>, T,
                         std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(static_cast<Wide>(values[i]) / static_cast<Wide>(by));
}

template <class T, class Op>
void reduce_typed(T* out, const std::byte* const* in, int sources, std::int64_t count,
                  bool average) {
  const auto source = [&](int k) { return reinterpret_cast<const T*>(in[k]); };
  if (sources == 2 && !average) return combine<T, Op>(out, source(0), source(1), count);
  // The sources are added block by block, so that the partial result stays in the innermost cache.
  // It has memory of its own, because `out` may be one of the sources that are still to be read.
  constexpr std::int64_t block = 4096 / static_cast<std::int64_t>(sizeof(T));
  alignas(64) T partial[static_cast<std::size_t>(block)];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t n = std::min(block, count - begin);
    const T* so_far = source(0) + begin;
    for (int k = 1; k < sources; ++k) {
      T* to = k == sources - 1 ? out + begin : partial;
      combine<T, Op>(to, so_far, source(k) + begin, n);
      so_far = to;
    }
    if (sources == 1 && out != source(0))
      std::memcpy(out + begin, so_far, static_cast<std::size_t>(n) * sizeof(T));
    if (average) divide(out + begin, n, sources);
  }
}

template <class T>
void reduce_as(ReduceOp op, std::byte* out, const std::byte* const* in, int sources,
               std::int64_t count) {
  auto* typed = reinterpret_cast<T*>(out);
  switch (op) {
    case ReduceOp::sum:
      return reduce_typed<T, Sum>(typed, in, sources, count, false);
    case ReduceOp::avg:
      return reduce_typed<T, Sum>(typed, in, sources, count, true);
    case ReduceOp::prod:
      return reduce_typed<T, Prod>(typed, in, sources, count, false);
    case ReduceOp::min:
      return reduce_typed<T, Min>(typed, in, sources, count, false);
    case ReduceOp::max:
      return reduce_typed<T, Max>(typed, in, sources, count, false);
  }
}

}  // namespace

void reduce(DataType type, ReduceOp op, std::byte* out, const std::byte* const* in, int sources,
            std::int64_t count) {
  visit(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>)  // can_reduce() excludes the others
      reduce_as<T>(op, out, in, sources, count);
  });
}

void divide(DataType type, std::byte* values, std::int64_t count, int by) {
  visit(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_arithmetic_v<T>) divide(reinterpret_cast<T*>(values), count, by);
  });
}

}  // namespace rankmesh::detail
