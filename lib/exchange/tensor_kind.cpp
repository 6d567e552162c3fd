// SPDX-License-Identifier: BSD-3-Clause
#include "detail/tensor_kind.hpp"

#include <numeric>
#include <string>

#include <fmt/format.h>

#include "base/detail/overlap.hpp"
#include "rankmesh/base/error.hpp"
#include "transfer/detail/plan_data.hpp"

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
DataType type_of_sum(DataType from, DataType to) {
  if (from == DataType::float64 || to == DataType::float64) return DataType::float64;
  return is_narrow_float(from) ? DataType::float32 : from;
}

// Throws the error of memory that is wrong.
// @param role  What it is to the transfer, for messages.
template <class Byte>
void check_memory(const TensorMemory<Byte>& given, const NeededMemory& needed, MemoryKind kind,
                  const TensorTransfer& transfer, const char* role, Rank self) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw UsageError{
        fmt::format("the {} of {} on rank {}: {}", role, name_of(transfer), self.value(), what),
        hint};
  };
  if (needed.count == 0 || needed.is_met_by(given, kind)) return;
  if (given.memory.kind == MemoryKind::device && kind == MemoryKind::host)
    throw UnsupportedError{fmt::format("the {} of {} is in device memory", role, name_of(transfer)),
                           "copy it to host memory first; a Redistribution moves device memory if "
                           "RedistributionOptions::kind says so"};
  if (given.memory.kind != kind)
    refuse("it is in host memory, the Redistribution moves device memory",
           "pass a DeviceSpan, or set RedistributionOptions::kind to MemoryKind::host on all "
           "members");
  if (given.memory.type != needed.type)
    refuse(fmt::format("its elements are {}, those of the plan {}", to_string(given.memory.type),
                       to_string(needed.type)),
           "pass elements of the type of the plan");
  if (!given.lengths.empty() && given.lengths != needed.shape)
    refuse(fmt::format("the array is [{}]", fmt::join(given.lengths, ",")),
           fmt::format("the local shape is [{}]: pass an array with these axes",
                       fmt::join(needed.shape, ",")));
  const bool is_dense = given.strides.empty();
  if (!is_dense && given.strides.size() != needed.shape.size())
    refuse(fmt::format("it has {} strides for {} axes", given.strides.size(), needed.shape.size()),
           "pass one stride per axis, or none for a dense array");
  std::int64_t count = is_dense ? needed.count : 1;  // from the first element to the last one
  for (std::size_t axis = 0; axis < given.strides.size(); ++axis) {
    if (given.strides[axis] < 0)
      refuse(fmt::format("the stride of axis {} is {}", axis, given.strides[axis]),
             "use strides of 0 or more");
    count += (needed.shape[axis] - 1) * given.strides[axis];
  }
  const bool is_wrong = is_dense ? given.memory.count != count : given.memory.count < count;
  if (is_wrong)
    refuse(fmt::format("it has {} elements, {} are needed", given.memory.count, count),
           fmt::format("the local shape is [{}]", fmt::join(needed.shape, ",")));
}

}  // namespace

NeededMemory::NeededMemory(const TensorPlacement& place, Rank self)
    : type{place.type()}, shape{place.local_shape(self)} {
  count = place.local_count(self) == 0 ? 0 : product(shape);
}

TensorKind::TensorKind(const TensorTransfer& transfer, Rank rank)
    : self{rank},
      source{transfer.from, rank},
      target{transfer.to, rank},
      type_in_message{message_type(transfer, TransferStep::first),
                      message_type(transfer, TransferStep::forward)},
      sum_type{type_of_sum(source.type, target.type)},
      has_sums{!transfer.from.sums().empty()} {
  if (transfer.copy) {  // a list of elements, not an array
    source.count += transfer.copy->local_count(rank);
    source.shape = {source.count};
  }
  rankmesh::detail::check_types(transfer);
}

void TensorKind::check_source(const TensorTransfer& transfer, const TensorSource& given,
                              MemoryKind kind) const {
  check_memory(given, source, kind, transfer, "source", self);
}

void TensorKind::check_target(const TensorTransfer& transfer, const TensorTarget& given,
                              MemoryKind kind) const {
  check_memory(given, target, kind, transfer, "target", self);
}

void TensorKind::check(const TensorTransfer& transfer, const TensorSource& given_source,
                       const TensorTarget& given_target, MemoryKind kind) const {
  check_source(transfer, given_source, kind);
  check_target(transfer, given_target, kind);
  if (rankmesh::detail::overlap(given_source.memory, given_target.memory.as_input()))
    throw UsageError{fmt::format("source and target of {} overlap", name_of(transfer)),
                     "use separate memory"};
}

}  // namespace rankmesh::exchange::detail
