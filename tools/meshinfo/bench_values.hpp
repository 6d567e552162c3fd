// SPDX-License-Identifier: BSD-3-Clause
// The values that measured calls carry, and the check of their results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench_case.hpp"

namespace meshinfo {

// Stores the values that a member contributes.
void store_input(rankmesh::DataType type, std::byte* to, std::int64_t count, std::int64_t member);

// Returns how many elements of a rank's result differ from a plain computation. Averages and half
// types may be rounded.
std::int64_t count_wrong(const BenchCase& work, const std::byte* results, std::int64_t count,
                         std::int64_t rank_in_group, std::int64_t group_size);

}  // namespace meshinfo
