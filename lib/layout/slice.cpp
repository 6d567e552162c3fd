// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/slice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {

Slice Slice::of(std::int64_t n, std::int64_t members, std::int64_t k) {
  if (n < 0) throw UsageError{fmt::format("a slice of {} elements", n), "pass 0 elements or more"};
  if (members < 1 || k < 0 || k >= members)
    throw UsageError{fmt::format("a slice for member {} of {}", k, members),
                     "members are numbered from 0 to the number of members - 1"};
  const auto begin = [&](std::int64_t member) {
    return member * (n / members) + std::min(member, n % members);
  };
  return {begin(k), begin(k + 1)};
}

}  // namespace rankmesh
