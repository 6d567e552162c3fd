// SPDX-License-Identifier: BSD-3-Clause
// Divides work so that loads become equal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rankmesh::detail {

/// Divides `amount` units among workers so that the greatest load is as small as possible, then the
/// second greatest load, and so on. If workers are equally loaded, the first of them get one unit
/// more.
/// @param loads  the units that each worker already has.
/// @return the units for each worker.
std::vector<std::int64_t> fill(std::span<const std::int64_t> loads, std::int64_t amount);

}  // namespace rankmesh::detail
