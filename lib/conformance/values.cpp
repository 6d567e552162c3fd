// SPDX-License-Identifier: BSD-3-Clause
#include "detail/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "detail/plain_arithmetic.hpp"
#include "rankmesh/base/narrow_float.hpp"

namespace rankmesh::conformance {

namespace {

// The values of reductions repeat after a prime number of elements, which is no count of the table
// and divides no size of a slot or of a piece, so that blocks at wrong places differ.
constexpr std::int64_t period = 1033;

template <class T>
inline constexpr bool is_narrow = is_narrow_float(DataTypeOf<T>::value);
// The type in which a T is computed.
template <class T>
using Computed = std::conditional_t<is_narrow<T>, float, T>;

// ReductionValues at the limits of a type. The order of the members does not matter to their sums,
// products, minima and maxima.
template <class T>
std::vector<T> limits(ReduceOp op) {
  using C = Computed<T>;
  using Numbers = std::numeric_limits<C>;
  if constexpr (std::is_integral_v<C>) {
    return {Numbers::max(),
            Numbers::min(),
            static_cast<C>(Numbers::max() - 1),
            C{3},
            C{1},
            static_cast<C>(Numbers::max() / 2 + 1),
            static_cast<C>(-1)};
  } else {
    const C nan = Numbers::quiet_NaN();
    const C inf = Numbers::infinity();
    std::vector<C> values{nan, C{1}, C{-0.0}, inf, C{-2}, -nan, C{0}, C{0.5}, -inf, nan, C{-0.0}};
    if (op == ReduceOp::min || op == ReduceOp::max)
      for (const C more : {Numbers::max(), Numbers::lowest(), C{2.5}}) values.push_back(more);
    // Sums that overflow the narrow type but not float32.
    if ((op == ReduceOp::sum || op == ReduceOp::avg) && is_narrow<T> && sizeof(T) == 2)
      values.insert(values.end(), {C{65504}, C{60000}});
    std::vector<T> result;
    for (const C value : values) result.push_back(static_cast<T>(value));
    return result;
  }
}

// Of 8 neighbouring elements, the first three change from place to place in such a way that every
// limit meets every other one at neighbouring members. Then come numbers of few digits, and last
// numbers that are rounded in sums (of wide floats) and in products.
enum class ValueKind { limit, small, rounded };
ValueKind kind_of(std::int64_t place) {
  const std::int64_t k = place % 8;
  return k < 3 ? ValueKind::limit : k < 5 ? ValueKind::small : ValueKind::rounded;
}

template <class T>
T value_of(ReduceOp op, const std::vector<T>& choices, std::int64_t member, std::int64_t place) {
  using C = Computed<T>;
  const auto n = std::ssize(choices);
  if (kind_of(place) == ValueKind::limit)
    return choices[static_cast<std::size_t>((place + member * (1 + place / n)) % n)];
  if constexpr (is_narrow<T>) {
    if (kind_of(place) == ValueKind::rounded && op == ReduceOp::prod)
      return T{static_cast<float>((member * 5 + place * 3) % 7 + 9) / 16.0F};
    if (kind_of(place) ==
        ValueKind::rounded)  // exact sums in float32, most of them not in the type
      return T{static_cast<float>((member * 37 + place * 11) % 29 - 9) / 16.0F};
  } else if constexpr (std::is_floating_point_v<T>) {
    if (kind_of(place) == ValueKind::rounded)
      return T{1} + static_cast<T>((member * 7919 + place * 104729) % 1000003) / T{999};
  }
  return static_cast<T>(static_cast<C>(1 + (member * 7 + place * 3) % 3));
}

// Whether the order in which the members are combined changes the rounded results.
bool depends_on_order(DataType type, ReduceOp op) {
  const bool is_wide = type == DataType::float32 || type == DataType::float64;
  const bool is_float = is_wide || is_narrow_float(type);
  return (is_float && op == ReduceOp::prod) ||
         (is_wide && (op == ReduceOp::sum || op == ReduceOp::avg));
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(static_cast<Computed<T>>(value));
}

// Whether two numbers differ by the rounding of a few steps at most.
template <class T>
bool is_close(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const auto x = static_cast<double>(static_cast<Computed<T>>(a));
    const auto y = static_cast<double>(static_cast<Computed<T>>(b));
    const double unit = std::is_same_v<T, double>    ? 1e-14
                        : std::is_same_v<T, float>   ? 1e-5
                        : std::is_same_v<T, Float16> ? 1.0 / 1024
                        : sizeof(T) == 2             ? 1.0 / 128
                                                     : 1.0 / 4;
    return std::abs(x - y) <= unit * std::abs(y);
  }
}

template <class T>
ReductionValues values_as(ReduceOp op, const Carrier& carrier, const Order& order,
                          std::int64_t combined) {
  using C = Computed<T>;
  const std::vector<T> choices = limits<T>(op);
  const bool is_known = !order.empty() || combined <= 2;
  Order members = order.empty() ? in_group_order(carrier.members) : order;
  for (auto& node : members) std::erase_if(node, [&](std::int64_t k) { return k >= combined; });
  std::erase_if(members, [](const auto& node) { return node.empty(); });
  std::vector<T> own, result;
  for (std::int64_t place = 0; place < period; ++place) {
    const auto input = [&](std::int64_t member) {
      return static_cast<C>(value_of<T>(op, choices, member, place));
    };
    own.push_back(value_of<T>(op, choices, carrier.self, place));
    const ReduceOp inner = op == ReduceOp::avg ? ReduceOp::sum : op;
    const auto of_node = [&](std::int64_t node) {
      const auto& there = members[static_cast<std::size_t>(node)];
      return reduced<C>(inner, std::ssize(there),
                        [&](std::int64_t k) { return input(there[static_cast<std::size_t>(k)]); });
    };
    if (combined < 2) {
      result.push_back(combined == 0 ? T{} : value_of<T>(op, choices, members[0][0], place));
      continue;
    }
    C whole = reduced<C>(inner, std::ssize(members), of_node);
    if (op == ReduceOp::avg) whole = average(whole, carrier.members);
    result.push_back(static_cast<T>(whole));
  }
  const bool may_differ = !is_known && depends_on_order(DataTypeOf<T>::value, op);
  const auto bytes = [](const std::vector<T>& values) {
    const auto view = std::as_bytes(std::span{values});
    return Bytes(view.begin(), view.end());
  };
  return {bytes(own), bytes(result),
          [result, may_differ](const std::byte* is, std::int64_t place, std::int64_t count) {
            std::int64_t differences = 0;
            for (std::int64_t i = 0; i < count; ++i, ++place) {
              T value;
              std::memcpy(&value, is + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
              const T expected = result[static_cast<std::size_t>(place % period)];
              if (std::memcmp(&value, &expected, sizeof(T)) == 0) continue;
              if (is_nan(value) && is_nan(expected)) continue;
              if (may_differ && kind_of(place % period) == ValueKind::rounded &&
                  is_close(value, expected))
                continue;
              ++differences;
            }
            return differences;
          }};
}

}  // namespace

ReductionValues values_of(DataType type, ReduceOp op, const Carrier& carrier, const Order& order,
                          std::int64_t combined) {
  return visit(type, [&]<class T>(std::type_identity<T>) {
    return values_as<T>(op, carrier, order, combined);
  });
}

void repeat(const Bytes& values, std::int64_t place, std::byte* to, std::int64_t count,
            std::int64_t element) {
  for (place %= period; count > 0; place = 0) {
    const std::int64_t n = std::min(count, period - place);
    std::memcpy(to, values.data() + place * element, static_cast<std::size_t>(n * element));
    to += n * element;
    count -= n;
  }
}

void fill_moved(std::byte* to, std::int64_t member, std::int64_t begin, std::int64_t bytes,
                std::int64_t number) {
  for (std::int64_t i = 0; i < bytes; ++i) {
    const std::int64_t at = begin + i;
    const std::uint64_t word =
        static_cast<std::uint64_t>(at / 8 + number * 7919) * 0x9e3779b97f4a7c15U +
        static_cast<std::uint64_t>(member) * 0xbf58476d1ce4e5b9U;
    to[i] = static_cast<std::byte>((word ^ (word >> 29)) >> (8 * (at % 8)));
  }
}

}  // namespace rankmesh::conformance
