// SPDX-License-Identifier: BSD-3-Clause
// Compiled with -O3 in every build type, so that the compiler vectorises the loops.
#include "detail/reduce_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/detail/private_api.hpp"

namespace rankmesh::detail {
namespace {

// The type in which integers are added and multiplied. Overflow of signed integers is undefined, so
// they are computed as unsigned ones. This is also necessary for 8-bit and 16-bit integers: they
// would be promoted to int, and the product of two uint16 can overflow an int.
template <class T>
struct Wrapping {
  using type = T;
};
template <class T>
  requires std::is_integral_v<T>
struct Wrapping<T> {
  using type = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
};

// The bits of a float.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
BitsOf<T> bits_of(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}
template <class T>
BitsOf<T> all_ones_if(bool condition) {
  return condition ? ~BitsOf<T>{0} : BitsOf<T>{0};
}

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
// The minimum and the maximum of floats follow NCCL, and minimumNumber and maximumNumber of IEEE
// 754-2019: if one operand is NaN, the result is the other one, and -0 is below +0. The operands
// may be exchanged and grouped in any way. The code uses masks instead of branches, so that the
// compiler vectorises the loops. If both operands are NaN, the result is the NaN whose bits are all
// 1, regardless of the bits of the operands.
struct Min {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return b < a ? b : a;
    } else {
      // Both are the same number, unless one operand is NaN or they are zeros with different signs.
      const auto one = bits_of(b < a ? b : a);
      const auto other = bits_of(a < b ? a : b);
      const auto keep_one = all_ones_if<T>(!std::isnan(a));
      const auto keep_other = all_ones_if<T>(!std::isnan(b));
      return std::bit_cast<T>((one & keep_one) | (other & keep_other) | ~(keep_one | keep_other));
    }
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? b : a;
    } else {
      const auto one = bits_of(a < b ? b : a);
      const auto other = bits_of(b < a ? a : b);
      return std::bit_cast<T>((one | all_ones_if<T>(std::isnan(a))) &
                              (other | all_ones_if<T>(std::isnan(b))));
    }
  }
};

// `out` is `a`, `b` or disjoint from both, so no iteration depends on another one. The pragmas tell
// this to the compilers, which would otherwise check for overlap at run time.
template <class T, class Op>
[[gnu::always_inline]] inline void loop(T* out, const T* a, const T* b, std::int64_t count) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::int64_t i = 0; i < count; ++i) out[i] = Op::template apply<T>(a[i], b[i]);
}

#ifdef __x86_64__
// The same loop for processors whose registers are wider than those that every x86-64 has. The
// loops of MPI libraries have such versions too.
template <class T, class Op>
[[gnu::target("avx2"), gnu::flatten]] void loop_of_256_bits(T* out, const T* a, const T* b,
                                                            std::int64_t count) {
  loop<T, Op>(out, a, b, count);
}
#ifdef __clang__
#define RANKMESH_512_BITS "avx512f,avx512bw,avx512dq,avx512vl"
#else
#define RANKMESH_512_BITS "avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"
#endif
template <class T, class Op>
[[gnu::target(RANKMESH_512_BITS), gnu::flatten]] void loop_of_512_bits(T* out, const T* a,
                                                                       const T* b,
                                                                       std::int64_t count) {
  loop<T, Op>(out, a, b, count);
}
#undef RANKMESH_512_BITS
#endif

template <class T, class Op>
void combine(T* out, const T* a, const T* b, std::int64_t count) {
#ifdef __x86_64__
  constexpr std::int64_t few = 256 / static_cast<std::int64_t>(sizeof(T));
  if (count >= few) {
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      return loop_of_512_bits<T, Op>(out, a, b, count);
    if (__builtin_cpu_supports("avx2")) return loop_of_256_bits<T, Op>(out, a, b, count);
  }
#endif
  loop<T, Op>(out, a, b, count);
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

RANKMESH_PRIVATE_API void reduce(DataType type, ReduceOp op, std::byte* out,
                                 const std::byte* const* in, int sources, std::int64_t count) {
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
