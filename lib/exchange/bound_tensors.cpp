// SPDX-License-Identifier: BSD-3-Clause
#include "detail/bound_tensors.hpp"

#include <algorithm>

#include "detail/element_runs.hpp"

namespace rankmesh::exchange::detail {
namespace {

// Whether the runs of a strip are contiguous.
bool is_contiguous(const Strip& strip, std::int64_t step) {
  return strip.count == 1 || step == strip.length;
}

// Calls use(target offset, count) for the runs of the elements that are stored in the first step.
template <class Use>
void for_each_stored(const TensorTransferOfRank& part, Use&& use) {
  for (const auto* list : {&part.copies, &part.receives})
    for (const TransferMessage& message : *list) {
      if (message.is_added || message.step != TransferStep::first) continue;
      StridedRuns{message.blocks}.for_each(0, message.elements, [&](const Strip& strip) {
        for (std::int64_t i = 0; i < strip.count; ++i)
          use(strip.target + i * strip.target_step, strip.length);
      });
    }
}

}  // namespace

BoundTensors::BoundTensors(const TransferPlan& plan, const TransferOfRank& part, Rank self)
    : plan_{&plan}, part_{&part} {
  // The pairs of places are numbered in the order of their first tensors.
  for (std::size_t t = 0; t < part.size(); ++t)
    if (part.kind(t) == kinds_.size()) kinds_.emplace_back(plan.tensors()[t], self);
  have_sums_ = std::ranges::any_of(kinds_, &TensorKind::has_sums);
  if (std::ranges::any_of(kinds_, &TensorKind::has_scratch)) scratch_.resize(part.size());
  for (std::size_t t = 0; t < scratch_.size(); ++t)
    if (kind(t).has_scratch())
      scratch_[t] = std::make_unique_for_overwrite<std::byte[]>(
          static_cast<std::size_t>(kind(t).target.count) * size_of(kind(t).sum_type));
}

void BoundTensors::bind(std::span<const TensorSource> source, std::span<const TensorTarget> target,
                        MemoryKind memory_kind) {
  for (BoundArrays* arrays : {&source_, &target_}) {
    arrays->data.resize(size());
    arrays->gaps.clear();
  }
  for (std::size_t t = 0; t < size(); ++t) {
    const TensorKind& of_tensor = kind(t);
    of_tensor.check(plan_->tensors()[t], source[t], target[t], memory_kind);
    // The source is only read.
    source_.data[t] = const_cast<std::byte*>(source[t].memory.data);
    target_.data[t] = target[t].memory.data;
    bind(source_, t, of_tensor.source, source[t].strides);
    bind(target_, t, of_tensor.target, target[t].strides);
  }
}

void BoundTensors::bind(BoundArrays& arrays, std::size_t tensor, const NeededMemory& needed,
                        const std::vector<std::int64_t>& strides) {
  if (strides.empty() || needed.count == 0) return;
  arrays.gaps.resize(size());
  arrays.gaps[tensor].set(needed.shape, strides);
}

ArrayView BoundTensors::receiver(std::size_t tensor, TransferStep step) const {
  if (step == TransferStep::first && kind(tensor).has_scratch())
    return {scratch_[tensor].get(), kind(tensor).sum_type};
  return target(tensor);
}

void BoundTensors::begin_sums() const {
  if (!have_sums_) return;
  for (std::size_t t = 0; t < size(); ++t) {
    if (!kind(t).has_sums) continue;
    const ArrayView sums = receiver(t, TransferStep::first);
    for_each_stored((*part_)[t], [&](std::int64_t offset, std::int64_t count) {
      sums.for_each(offset, count, [&](std::byte* data, std::int64_t n) {
        std::fill_n(data, n * sums.width(), std::byte{0});
      });
    });
  }
}

void BoundTensors::end_sums() const {
  for (std::size_t t = 0; t < scratch_.size(); ++t) {
    if (!kind(t).has_scratch()) continue;
    const ArrayView sums = receiver(t, TransferStep::first), to = target(t);
    for_each_stored((*part_)[t], [&](std::int64_t offset, std::int64_t count) {
      to.for_each(offset, count, [&](std::byte* data, std::int64_t n) {
        store_elements(data, to.type(), sums.at(offset), sums.type(), n);
        offset += n;
      });
    });
  }
}

const std::byte* BoundTensors::sent_in_place(std::size_t tensor, TransferStep step,
                                             const Strip& strip) const {
  const ArrayView from = sender(tensor, step);
  const bool is_in_place = from.is_dense() && is_contiguous(strip, strip.source_step) &&
                           kind(tensor).type_of(step) == from.type();
  return is_in_place ? from.at(strip.source) : nullptr;
}

std::byte* BoundTensors::received_in_place(std::size_t tensor, TransferStep step,
                                           const Strip& strip) const {
  const ArrayView to = target(tensor);
  const bool is_stored = step == TransferStep::forward || !kind(tensor).has_sums;
  const bool is_in_place = is_stored && to.is_dense() && is_contiguous(strip, strip.target_step) &&
                           kind(tensor).type_of(step) == to.type();
  return is_in_place ? to.at(strip.target) : nullptr;
}

std::byte* BoundTensors::pack(std::size_t tensor, TransferStep step, const Strip& strip,
                              std::byte* message, DataType type) const {
  const ArrayView from = sender(tensor, step);
  const auto width = static_cast<std::int64_t>(size_of(type));
  const std::int64_t run = strip.length * width;
  if (from.is_dense() && from.type() == type) {
    copy_runs(message, run, from.at(strip.source), strip.source_step * width,
              static_cast<std::size_t>(run), strip.count);
    return message + run * strip.count;
  }
  for (std::int64_t i = 0; i < strip.count; ++i)
    from.for_each(strip.source + i * strip.source_step, strip.length,
                  [&](const std::byte* data, std::int64_t n) {
                    store_elements(message, type, data, from.type(), n);
                    message += n * width;
                  });
  return message;
}

const std::byte* BoundTensors::unpack(std::size_t tensor, TransferStep step, const Strip& strip,
                                      const std::byte* message, DataType type) const {
  const ArrayView to = receiver(tensor, step);
  const auto width = static_cast<std::int64_t>(size_of(type));
  const bool is_added = kind(tensor).has_sums && step == TransferStep::first;
  const std::int64_t run = strip.length * width;
  if (to.is_dense() && to.type() == type && !is_added) {
    copy_runs(to.at(strip.target), strip.target_step * width, message, run,
              static_cast<std::size_t>(run), strip.count);
    return message + run * strip.count;
  }
  for (std::int64_t i = 0; i < strip.count; ++i)
    to.for_each(strip.target + i * strip.target_step, strip.length,
                [&](std::byte* data, std::int64_t n) {
                  (is_added ? add_elements : store_elements)(data, to.type(), message, type, n);
                  message += n * width;
                });
  return message;
}

void BoundTensors::copy(std::size_t tensor, const StreamKind& own) const {
  const ArrayView from = sender(tensor, TransferStep::first), to = target(tensor);
  const std::int64_t width = from.width(), elements = own.message().elements;
  if (from.is_dense() && to.is_dense() && from.type() == to.type() && !kind(tensor).has_sums)
    return own.runs().for_each(0, elements, [&](const Strip& strip) {
      copy_runs(to.at(strip.target), strip.target_step * width, from.at(strip.source),
                strip.source_step * width, static_cast<std::size_t>(strip.length * width),
                strip.count);
    });
  constexpr std::int64_t most = 512;  // elements
  std::byte piece[most * sizeof(double)];
  for (std::int64_t done = 0; done < elements; done += most)
    own.runs().for_each(done, std::min(most, elements - done), [&](const Strip& strip) {
      pack(tensor, TransferStep::first, strip, piece, own.type());
      unpack(tensor, TransferStep::first, strip, piece, own.type());
    });
}

}  // namespace rankmesh::exchange::detail
