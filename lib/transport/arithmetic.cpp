// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transport/arithmetic.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "detail/reduce_kernels.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

void require_wide(DataType type) {
  if (!detail::can_reduce(type))
    throw UnsupportedError{fmt::format("{} cannot be combined directly", to_string(type)),
                           "convert the elements to float32 first"};
}

}  // namespace

void combine(DataType type, ReduceOp op, void* out, const void* a, const void* b,
             std::int64_t count) {
  require_wide(type);
  const std::byte* const in[] = {static_cast<const std::byte*>(a),
                                 static_cast<const std::byte*>(b)};
  detail::reduce(type, op == ReduceOp::avg ? ReduceOp::sum : op, static_cast<std::byte*>(out), in,
                 2, count);
}

void finish_average(DataType type, void* values, std::int64_t count, std::int64_t members) {
  require_wide(type);
  detail::divide(type, static_cast<std::byte*>(values), count, static_cast<int>(members));
}

}  // namespace rankmesh
