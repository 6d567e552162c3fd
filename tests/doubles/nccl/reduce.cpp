// SPDX-License-Identifier: BSD-3-Clause
#include "reduce.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/settings.hpp"

namespace fake {
namespace {

// How a stored value is computed with: wide types as they are, narrow floating types in float,
// integers in their unsigned form, so that overflow is defined.
template <class T>
struct Arithmetic {
  using Wide = T;
  static Wide load(T value) { return value; }
  static T store(Wide value) { return value; }
};

template <>
struct Arithmetic<__half> {
  using Wide = float;
  static Wide load(__half value) { return __half2float(value); }
  static __half store(Wide value) { return __float2half_rn(value); }
};

template <>
struct Arithmetic<__nv_bfloat16> {
  using Wide = float;
  static Wide load(__nv_bfloat16 value) { return __bfloat162float(value); }
  static __nv_bfloat16 store(Wide value) { return __float2bfloat16_rn(value); }
};

template <>
struct Arithmetic<__nv_fp8_e4m3> {
  using Wide = float;
  static Wide load(__nv_fp8_e4m3 value) { return static_cast<float>(value); }
  static __nv_fp8_e4m3 store(Wide value) { return __nv_fp8_e4m3(value); }
};

template <>
struct Arithmetic<__nv_fp8_e5m2> {
  using Wide = float;
  static Wide load(__nv_fp8_e5m2 value) { return static_cast<float>(value); }
  static __nv_fp8_e5m2 store(Wide value) { return __nv_fp8_e5m2(value); }
};

template <class Wide>
Wide plus(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>) {
    using U = std::make_unsigned_t<Wide>;
    return static_cast<Wide>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

template <class Wide>
Wide times(Wide a, Wide b) {
  if constexpr (std::is_integral_v<Wide>) {
    return static_cast<Wide>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

// A number wins over a NaN, as in NCCL's device/reduce_kernel.h.
template <class Wide>
Wide extreme(bool is_min, Wide a, Wide b) {
  if (a != a) return b;
  if (b != b) return a;
  return is_min ? std::min(a, b) : std::max(a, b);
}

// An average of floats is a sum of products. hostToDevRedOp (src/enqueue.cc) rounds the factor
// 1/ranks to the type, and FuncPreMulSum (src/device/reduce_kernel.h) each product.
template <class T>
auto scaled_for_average(typename Arithmetic<T>::Wide value, std::size_t ranks) {
  using A = Arithmetic<T>;
  using Wide = typename A::Wide;
  return A::load(
      A::store(value * A::load(A::store(static_cast<Wide>(1.0 / static_cast<double>(ranks))))));
}

template <class T>
void combine_as(const std::vector<const void*>& inputs, void* out, std::size_t count,
                ncclRedOp_t op) {
  using A = Arithmetic<T>;
  using Wide = typename A::Wide;
  if (broken("reduction_ops")) op = ncclSum;
  const bool scales = op == ncclAvg && !std::is_integral_v<Wide> && !broken("rounded_factor");
  const auto input = [&](std::size_t r, std::size_t i) {
    const Wide value = A::load(static_cast<const T*>(inputs[r])[i]);
    if constexpr (!std::is_integral_v<Wide>)
      if (scales) return scaled_for_average<T>(value, inputs.size());
    return value;
  };
  for (std::size_t i = 0; i < count; ++i) {
    Wide all = input(0, i);
    for (std::size_t r = 1; r < inputs.size(); ++r) {
      const Wide next = input(r, i);
      if (op == ncclProd)
        all = times(all, next);
      else if (op == ncclMax)
        all = extreme(false, all, next);
      else if (op == ncclMin)
        all = extreme(true, all, next);
      else
        all = plus(all, next);
    }
    if (op == ncclAvg && !scales) all = static_cast<Wide>(all / static_cast<Wide>(inputs.size()));
    static_cast<T*>(out)[i] = A::store(all);
  }
}

template <class T>
void premultiply_as(const void* from, void* to, std::size_t count, const Reduction& scalar) {
  using A = Arithmetic<T>;
  const void* const where =
      scalar.pointer != nullptr ? scalar.pointer : static_cast<const void*>(scalar.value);
  const auto factor = A::load(*static_cast<const T*>(where));
  for (std::size_t i = 0; i < count; ++i)
    static_cast<T*>(to)[i] = A::store(times(A::load(static_cast<const T*>(from)[i]), factor));
}

// Calls function.operator()<T>() with the C++ type of an NCCL type.
template <class Function>
void with_type(ncclDataType_t type, Function function) {
  switch (type) {
    case ncclInt8:
      return function.template operator()<std::int8_t>();
    case ncclUint8:
      return function.template operator()<std::uint8_t>();
    case ncclInt32:
      return function.template operator()<std::int32_t>();
    case ncclUint32:
      return function.template operator()<std::uint32_t>();
    case ncclInt64:
      return function.template operator()<std::int64_t>();
    case ncclUint64:
      return function.template operator()<std::uint64_t>();
    case ncclFloat16:
      return function.template operator()<__half>();
    case ncclFloat32:
      return function.template operator()<float>();
    case ncclFloat64:
      return function.template operator()<double>();
    case ncclBfloat16:
      return function.template operator()<__nv_bfloat16>();
    case ncclFloat8e4m3:
      return function.template operator()<__nv_fp8_e4m3>();
    case ncclFloat8e5m2:
      return function.template operator()<__nv_fp8_e5m2>();
    case ncclNumTypes:
      break;
  }
}

}  // namespace

void combine(const std::vector<const void*>& inputs, void* out, std::size_t count,
             ncclDataType_t type, ncclRedOp_t op) {
  with_type(type, [&]<class T>() { combine_as<T>(inputs, out, count, op); });
}

void premultiply(const void* from, void* to, std::size_t count, ncclDataType_t type,
                 const Reduction& scalar) {
  with_type(type, [&]<class T>() { premultiply_as<T>(from, to, count, scalar); });
}

}  // namespace fake
