// SPDX-License-Identifier: BSD-3-Clause
#include "detail/moved_tensor.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "detail/element_runs.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::exchange::detail {
namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
}

std::string name_of(const TensorTransfer& transfer) {
  return transfer.name.empty() ? fmt::format("the tensor {}", transfer.from.to_string())
                               : fmt::format("the tensor '{}'", transfer.name);
}

// The type in which sums of elements are formed.
DataType sum_type(DataType from, DataType to) {
  if (from == DataType::float64 || to == DataType::float64) return DataType::float64;
  return is_narrow_float(from) ? DataType::float32 : from;
}

// Whether the runs of a strip are contiguous.
bool is_contiguous(const Strip& strip, std::int64_t step) {
  return strip.count == 1 || step == strip.length;
}

}  // namespace

MovedTensor::MovedTensor(const TensorTransfer& transfer, Rank self)
    : transfer_{&transfer},
      self_{self},
      source_type_{transfer.from.type()},
      target_type_{transfer.to.type()},
      has_sums_{!transfer.from.sums().empty()},
      source_shape_{transfer.from.local_shape(self)},
      target_shape_{transfer.to.local_shape(self)} {
  if (!is_convertible(source_type_, target_type_))
    throw UsageError{fmt::format("{} cannot become {}", name_of(transfer), to_string(target_type_)),
                     "convert floats to floats; elements of other types keep their type"};
  message_type_ = message_type(transfer, TransferStep::first);
  forwarded_type_ = message_type(transfer, TransferStep::forward);
  sum_type_ = sum_type(source_type_, target_type_);
}

void MovedTensor::check(const ConstBuffer& memory, const std::vector<std::int64_t>& strides,
                        const TensorPlacement& place, const std::vector<std::int64_t>& shape,
                        const char* role, MemoryKind kind) const {
  if (product(shape) == 0 || place.local_count(self_) == 0) return;
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw UsageError{
        fmt::format("the {} of {} on rank {}: {}", role, name_of(*transfer_), self_.value(), what),
        hint};
  };
  if (memory.kind == MemoryKind::device && kind == MemoryKind::host)
    throw UnsupportedError{
        fmt::format("the {} of {} is in device memory", role, name_of(*transfer_)),
        "copy it to host memory first; a Redistribution moves device memory if "
        "RedistributionOptions::kind says so"};
  if (memory.kind != kind)
    refuse("it is in host memory, the Redistribution moves device memory",
           "pass a DeviceSpan, or set RedistributionOptions::kind to MemoryKind::host on all "
           "members");
  if (memory.type != place.type())
    refuse(fmt::format("its elements are {}, those of the plan {}", to_string(memory.type),
                       to_string(place.type())),
           "pass elements of the type of the plan");
  std::int64_t needed = product(shape);
  if (!strides.empty()) {
    if (strides.size() != shape.size())
      refuse(fmt::format("it has {} strides for {} axes", strides.size(), shape.size()),
             "pass one stride per axis, or none for a dense array");
    needed = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (strides[axis] < 0)
        refuse(fmt::format("the stride of axis {} is {}", axis, strides[axis]),
               "use strides of 0 or more");
      needed += (shape[axis] - 1) * strides[axis];
    }
  }
  const bool is_wrong = strides.empty() ? memory.count != needed : memory.count < needed;
  if (is_wrong)
    refuse(fmt::format("it has {} elements, {} are needed", memory.count, needed),
           fmt::format("the local shape is [{}]", fmt::join(shape, ",")));
}

void MovedTensor::check(const TensorSource& source, const TensorTarget& target,
                        MemoryKind kind) const {
  check(source.memory, source.strides, transfer_->from, source_shape_, "source", kind);
  check(target.memory.as_input(), target.strides, transfer_->to, target_shape_, "target", kind);
  const std::less<const std::byte*> before;
  const ConstBuffer& in = source.memory;
  const Buffer& out = target.memory;
  if (in.bytes() > 0 && out.bytes() > 0 && before(in.data, out.data + out.bytes()) &&
      before(out.data, in.data + in.bytes()))
    throw UsageError{fmt::format("source and target of {} overlap", name_of(*transfer_)),
                     "use separate memory"};
}

void MovedTensor::bind(const TensorSource& source, const TensorTarget& target) {
  // The source is only read.
  source_ = {const_cast<std::byte*>(source.memory.data), source_type_, source_shape_,
             source.strides};
  target_ = {target.memory.data, target_type_, target_shape_, target.strides};
  sums_ = target_;
  if (!has_scratch()) return;
  scratch_.resize(static_cast<std::size_t>(product(target_shape_)) * size_of(sum_type_));
  sums_ = {scratch_.data(), sum_type_, target_shape_, {}};
}

namespace {

// Calls use(target offset, count) for the runs of the elements that are stored in the first step.
template <class Use>
void for_each_stored(const TensorTransferOfRank& part, Use&& use) {
  for (const auto* list : {&part.copies, &part.receives})
    for (const TransferMessage& message : *list) {
      if (message.is_added || message.step != TransferStep::first) continue;
      for (const TransferBlock& block : message.blocks)
        block.for_each(
            [&](std::int64_t, std::int64_t target, std::int64_t length) { use(target, length); });
    }
}

}  // namespace

void MovedTensor::begin_sums(const TensorTransferOfRank& part) {
  if (!has_sums_) return;
  for_each_stored(part, [&](std::int64_t offset, std::int64_t count) {
    sums_.for_each(offset, count, [&](std::byte* data, std::int64_t n) {
      std::fill_n(data, n * sums_.width(), std::byte{0});
    });
  });
}

void MovedTensor::end_sums(const TensorTransferOfRank& part) {
  if (!has_scratch()) return;
  for_each_stored(part, [&](std::int64_t offset, std::int64_t count) {
    target_.for_each(offset, count, [&](std::byte* data, std::int64_t n) {
      store_elements(data, target_type_, sums_.at(offset), sum_type_, n);
      offset += n;
    });
  });
}

const std::byte* MovedTensor::sent_in_place(TransferStep step, const Strip& strip) const {
  const LocalArray& from = sender(step);
  const bool is_in_place = from.is_dense() && type_in_message(step) == from.type() &&
                           is_contiguous(strip, strip.source_step);
  return is_in_place ? from.at(strip.source) : nullptr;
}

std::byte* MovedTensor::received_in_place(TransferStep step, const Strip& strip) const {
  const bool is_in_place = (step == TransferStep::forward || !has_sums_) && target_.is_dense() &&
                           type_in_message(step) == target_type_ &&
                           is_contiguous(strip, strip.target_step);
  return is_in_place ? target_.at(strip.target) : nullptr;
}

std::byte* MovedTensor::pack(TransferStep step, const Strip& strip, std::byte* message,
                             DataType type) const {
  const LocalArray& from = sender(step);
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

const std::byte* MovedTensor::unpack(TransferStep step, const Strip& strip,
                                     const std::byte* message, DataType type) const {
  const LocalArray& to = receiver(step);
  const auto width = static_cast<std::int64_t>(size_of(type));
  const bool is_added = has_sums_ && step == TransferStep::first;
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

void MovedTensor::publish(TransferStep step, std::int64_t* published) const {
  published[0] = reinterpret_cast<std::int64_t>(sender(step).data());
  sender(step).store_strides(step == TransferStep::forward ? target_shape_ : source_shape_,
                             published + 1);
}

LocalArray MovedTensor::memory_of(Rank owner, TransferStep step,
                                  const std::int64_t* published) const {
  const bool is_forward = step == TransferStep::forward;
  const auto shape = (is_forward ? transfer_->to : transfer_->from).local_shape(owner);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process
  return {reinterpret_cast<std::byte*>(published[0]), type_of_sender(step), shape,
          std::span{published + 1, shape.size()}};
}

void MovedTensor::copy(const TransferMessage& own) const {
  const bool is_plain =
      source_.is_dense() && target_.is_dense() && source_type_ == target_type_ && !has_sums_;
  const std::int64_t width = source_.width();
  constexpr std::int64_t most = 512;  // elements
  std::byte piece[most * sizeof(double)];
  BlockCursor cursor;
  cursor.begin(own.blocks);
  for (std::int64_t left = own.elements; left > 0;) {
    const Strip strip = cursor.peek(is_plain ? left : std::min<std::int64_t>(left, most));
    if (is_plain) {
      copy_runs(target_.at(strip.target), strip.target_step * width, source_.at(strip.source),
                strip.source_step * width, static_cast<std::size_t>(strip.length * width),
                strip.count);
    } else {
      pack(TransferStep::first, strip, piece, message_type_);
      unpack(TransferStep::first, strip, piece, message_type_);
    }
    cursor.pass(strip);
    left -= strip.elements();
  }
}

}  // namespace rankmesh::exchange::detail
