// SPDX-License-Identifier: BSD-3-Clause
#include "detail/moved_tensors.hpp"

#include <algorithm>

namespace rankmesh::exchange::detail {

void BoundArrays::clear(std::size_t tensors) {
  data_.resize(tensors);
  have_gaps_ = false;
}

void BoundArrays::set_gaps(std::size_t tensor, const std::vector<std::int64_t>& shape,
                           const std::vector<std::int64_t>& strides) {
  if (!have_gaps_) {
    gaps_.resize(data_.size());
    for (ArrayGaps& gaps : gaps_) gaps.clear();
    have_gaps_ = true;
  }
  gaps_[tensor].set(shape, strides);
}

MovedTensors::MovedTensors(const TransferPlan& plan, const TransferOfRank& part, Rank self)
    : plan_{&plan}, part_{&part} {
  // The pairs of places are numbered in the order of their first tensors.
  for (std::size_t t = 0; t < part.size(); ++t)
    if (part.kind(t) == kinds_.size()) kinds_.emplace_back(plan.tensors()[t], self);
  have_sums_ = std::ranges::any_of(kinds_, &MovedKind::has_sums);
  if (std::ranges::any_of(kinds_, &MovedKind::has_scratch)) scratch_.resize(part.size());
  for (std::size_t t = 0; t < scratch_.size(); ++t)
    if (kind(t).has_scratch())
      scratch_[t] = std::make_unique_for_overwrite<std::byte[]>(
          static_cast<std::size_t>(kind(t).target().count) * size_of(kind(t).sum_type()));
}

void MovedTensors::bind(std::span<const TensorSource> source, std::span<const TensorTarget> target,
                        MemoryKind kind) {
  source_.clear(size());
  target_.clear(size());
  for (std::size_t t = 0; t < size(); ++t) {
    const MovedKind& of_tensor = this->kind(t);
    of_tensor.check(plan_->tensors()[t], source[t], target[t], kind);
    // The source is only read.
    source_.set(t, const_cast<std::byte*>(source[t].memory.data), of_tensor.source(),
                source[t].strides);
    target_.set(t, target[t].memory.data, of_tensor.target(), target[t].strides);
  }
}

}  // namespace rankmesh::exchange::detail
