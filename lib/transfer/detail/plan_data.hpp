// SPDX-License-Identifier: BSD-3-Clause
// The parts of a TransferPlan.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "rankmesh/transfer/plan.hpp"
#include "transfer/detail/pair_plan.hpp"

namespace rankmesh {

struct TransferPlan::Data {
  std::vector<TensorTransfer> tensors;
  std::optional<Machine> machine;
  TransferOptions options;
  std::int64_t world_size = 0;
  std::vector<std::uint32_t> kinds;         // one per tensor
  std::deque<detail::PairPlan> pairs;       // one per kind
  std::vector<std::size_t> first_of_kind;   // the first tensor of each kind
  std::vector<std::int64_t> count_of_kind;  // the number of tensors of each kind
};

namespace detail {

/// Throws a UsageError unless the elements keep their type, or are floats before and after.
void check_types(const TensorTransfer& tensor);

}  // namespace detail

}  // namespace rankmesh
