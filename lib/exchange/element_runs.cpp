// SPDX-License-Identifier: BSD-3-Clause
#include "detail/element_runs.hpp"

#include <algorithm>
#include <span>

#include "rankmesh/base/narrow_float.hpp"
#include "transport/detail/reduce_kernels.hpp"

namespace rankmesh::exchange::detail {
namespace {

constexpr std::size_t converted_at_once = 256;  // elements that are converted at a time

// Aligned memory for elements of any type.
struct Aligned {
  alignas(16) std::byte bytes[converted_at_once * sizeof(double)];
};

void to_floats(DataType type, const Aligned& from, std::span<float> to) {
  if (is_narrow_float(type)) return widen(type, from.bytes, to);
  if (type == DataType::float32) {
    std::memcpy(to.data(), from.bytes, to.size_bytes());
    return;
  }
  const auto* values = reinterpret_cast<const double*>(from.bytes);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(values[i]);
}

void from_floats(DataType type, std::span<const float> from, Aligned& to) {
  if (is_narrow_float(type)) return narrow(type, from, to.bytes);
  if (type == DataType::float32) {
    std::memcpy(to.bytes, from.data(), from.size_bytes());
    return;
  }
  auto* values = reinterpret_cast<double*>(to.bytes);
  for (std::size_t i = 0; i < from.size(); ++i) values[i] = from[i];
}

// Converts elements piece by piece, and calls use(offset, converted, count). Elements are converted
// through float32. For any two different types of floats, this step is either exact or a part of
// the rounding.
template <class Use>
void for_each_converted(DataType to, const std::byte* from, DataType from_type, std::int64_t count,
                        Use&& use) {
  Aligned in, out;
  float floats[converted_at_once];
  for (std::int64_t done = 0; done < count;) {
    const auto n = std::min(converted_at_once, static_cast<std::size_t>(count - done));
    std::memcpy(in.bytes, from + done * static_cast<std::int64_t>(size_of(from_type)),
                n * size_of(from_type));
    if (to == from_type) {
      use(done, in, n);
    } else {
      to_floats(from_type, in, {floats, n});
      from_floats(to, {floats, n}, out);
      use(done, out, n);
    }
    done += static_cast<std::int64_t>(n);
  }
}

}  // namespace

void store_elements(std::byte* to, DataType to_type, const std::byte* from, DataType from_type,
                    std::int64_t count) {
  const auto width = static_cast<std::int64_t>(size_of(to_type));
  if (to_type == from_type) {
    std::memcpy(to, from, static_cast<std::size_t>(count * width));
    return;
  }
  for_each_converted(to_type, from, from_type, count,
                     [&](std::int64_t offset, const Aligned& values, std::size_t n) {
                       std::memcpy(to + offset * width, values.bytes, n * size_of(to_type));
                     });
}

void add_elements(std::byte* to, DataType to_type, const std::byte* from, DataType from_type,
                  std::int64_t count) {
  const auto width = static_cast<std::int64_t>(size_of(to_type));
  for_each_converted(to_type, from, from_type, count,
                     [&](std::int64_t offset, const Aligned& values, std::size_t n) {
                       std::byte* const sums = to + offset * width;
                       const std::byte* const terms[] = {sums, values.bytes};
                       rankmesh::detail::reduce(to_type, ReduceOp::sum, sums, terms, 2,
                                                static_cast<std::int64_t>(n));
                     });
}

}  // namespace rankmesh::exchange::detail
