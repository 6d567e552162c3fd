// SPDX-License-Identifier: BSD-3-Clause
#include "bench_case.hpp"

#include <algorithm>

namespace meshinfo {

using rankmesh::MemoryKind;
using rankmesh::Operation;

using rankmesh::Extent;
using rankmesh::InPlace;

CaseSize size_of(const BenchCase& work, std::int64_t group_size) {
  if (!has_data(work.operation)) return {0, 0};
  const auto width = static_cast<std::int64_t>(rankmesh::size_of(work.type));
  const std::int64_t blocks = has_v_form(work.operation) ? group_size : 1;
  const std::int64_t count = std::max<std::int64_t>(1, work.bytes / (width * blocks));
  return {count, count * blocks * width};
}

bool has_form(const BenchCase& work, bool in_place) {
  const rankmesh::OperationFacts& facts = facts_of(work.operation);
  if (facts.in == Extent::none) return in_place == (facts.out != Extent::none);
  if (!in_place) return true;
  if (facts.in_place == InPlace::block_of_input_on_device) return work.memory == MemoryKind::device;
  // NCCL's all_to_all would overwrite what it has yet to send.
  return work.operation != Operation::all_to_all || work.memory == MemoryKind::host;
}

Operands operands_of(const BenchCase& work, bool in_place, std::int64_t rank_in_group,
                     std::int64_t group_size) {
  const rankmesh::OperationFacts& facts = facts_of(work.operation);
  const std::int64_t count = size_of(work, group_size).count;
  const auto elements = [&](Extent extent) {
    return extent == Extent::none ? 0 : extent == Extent::block ? count : count * group_size;
  };
  Operands operands{{0, 0, elements(facts.in)}, {1, 0, elements(facts.out)}};
  if (facts.in == Extent::none) return {{}, operands.out};
  // Rooted operations are in place on the root alone.
  if (!in_place || (has_root(work.operation) && rank_in_group != work.root)) return operands;
  operands.in.buffer = 1;
  if (facts.in_place == InPlace::block_of_output) operands.in.offset = rank_in_group * count;
  if (scatters(work.operation)) operands.out.offset = rank_in_group * count;
  return operands;
}

}  // namespace meshinfo
