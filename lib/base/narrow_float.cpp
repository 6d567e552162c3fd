// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh {
namespace {

template <class T>
inline constexpr bool is_narrow = false;
template <class Format, class Bits>
inline constexpr bool is_narrow<NarrowFloat<Format, Bits>> = true;

}  // namespace

void widen(DataType type, const std::byte* from, std::span<float> to) {
  visit(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_narrow<T>) {
      const auto* stored = reinterpret_cast<const T*>(from);
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(stored[i]);
    }
  });
}

void narrow(DataType type, std::span<const float> from, std::byte* to) {
  visit(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_narrow<T>) {
      auto* stored = reinterpret_cast<T*>(to);
      for (std::size_t i = 0; i < from.size(); ++i) stored[i] = T{from[i]};
    }
  });
}

}  // namespace rankmesh
