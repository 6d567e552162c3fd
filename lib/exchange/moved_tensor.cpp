// SPDX-License-Identifier: BSD-3-Clause
#include "detail/moved_tensor.hpp"

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
      for (const TransferBlock& block : message.blocks)
        block.for_each(
            [&](std::int64_t, std::int64_t target, std::int64_t length) { use(target, length); });
    }
}

}  // namespace

void MovedTensor::begin_sums(const TensorTransferOfRank& part) const {
  if (!kind.has_sums()) return;
  for_each_stored(part, [&](std::int64_t offset, std::int64_t count) {
    sums.for_each(offset, count, [&](std::byte* data, std::int64_t n) {
      std::fill_n(data, n * sums.width(), std::byte{0});
    });
  });
}

void MovedTensor::end_sums(const TensorTransferOfRank& part) const {
  if (!kind.has_scratch()) return;
  for_each_stored(part, [&](std::int64_t offset, std::int64_t count) {
    target.for_each(offset, count, [&](std::byte* data, std::int64_t n) {
      store_elements(data, kind.target().type, sums.at(offset), kind.sum_type(), n);
      offset += n;
    });
  });
}

const std::byte* MovedTensor::sent_in_place(TransferStep step, const Strip& strip) const {
  const LocalArray& from = sender(step);
  const bool is_in_place = from.is_dense() && kind.type_in_message(step) == from.type() &&
                           is_contiguous(strip, strip.source_step);
  return is_in_place ? from.at(strip.source) : nullptr;
}

std::byte* MovedTensor::received_in_place(TransferStep step, const Strip& strip) const {
  const bool is_in_place = (step == TransferStep::forward || !kind.has_sums()) &&
                           target.is_dense() && kind.type_in_message(step) == kind.target().type &&
                           is_contiguous(strip, strip.target_step);
  return is_in_place ? target.at(strip.target) : nullptr;
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
  const bool is_added = kind.has_sums() && step == TransferStep::first;
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

void MovedTensor::copy(const StreamKind& own, StripCursor& cursor) const {
  const bool is_plain =
      source.is_dense() && target.is_dense() && source.type() == target.type() && !kind.has_sums();
  const std::int64_t width = source.width();
  constexpr std::int64_t most = 512;  // elements
  std::byte piece[most * sizeof(double)];
  cursor.begin(own.strips());
  for (std::int64_t left = own.message().elements; left > 0;) {
    const Strip strip = cursor.peek(is_plain ? left : std::min<std::int64_t>(left, most));
    if (is_plain) {
      copy_runs(target.at(strip.target), strip.target_step * width, source.at(strip.source),
                strip.source_step * width, static_cast<std::size_t>(strip.length * width),
                strip.count);
    } else {
      pack(TransferStep::first, strip, piece, own.type());
      unpack(TransferStep::first, strip, piece, own.type());
    }
    cursor.pass(strip);
    left -= strip.elements();
  }
}

}  // namespace rankmesh::exchange::detail
