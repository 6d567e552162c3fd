// SPDX-License-Identifier: BSD-3-Clause
#include "bench_case.hpp"

#include <algorithm>

namespace meshinfo {

using rankmesh::MemoryKind;
using rankmesh::Operation;

namespace {

// Whether the larger buffer of a rank has a block for every member.
bool has_blocks(Operation operation) {
  return operation >= Operation::all_gather && operation <= Operation::all_to_all;
}

}  // namespace

CaseSize size_of(const BenchCase& work, std::int64_t group_size) {
  if (work.operation == Operation::barrier) return {0, 0};
  const auto width = static_cast<std::int64_t>(rankmesh::size_of(work.type));
  const std::int64_t blocks = has_blocks(work.operation) ? group_size : 1;
  const std::int64_t count = std::max<std::int64_t>(1, work.bytes / (width * blocks));
  return {count, count * blocks * width};
}

bool has_form(const BenchCase& work, bool in_place) {
  switch (work.operation) {
    case Operation::broadcast:
      return in_place;
    case Operation::barrier:
      return !in_place;
    case Operation::reduce_scatter:
      return !in_place || work.memory == MemoryKind::device;
    case Operation::all_to_all:
      return !in_place || work.memory == MemoryKind::host;
    case Operation::reduce:
    case Operation::all_reduce:
    case Operation::all_gather:
    case Operation::gather:
    case Operation::scatter:
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      return true;
  }
  return true;
}

Operands operands_of(const BenchCase& work, bool in_place, std::int64_t rank_in_group,
                     std::int64_t group_size) {
  const std::int64_t count = size_of(work, group_size).count;
  const std::int64_t all = count * group_size;
  const bool is_root = rank_in_group == work.root;
  const Part block{1, rank_in_group * count, count};  // this rank's, in place
  const Part in{in_place ? 1 : 0, 0, count};
  const Part out{1, 0, count};
  switch (work.operation) {
    case Operation::broadcast:
      return {{}, out};
    case Operation::reduce:  // in place on the root alone
      return {in_place && !is_root ? Part{0, 0, count} : in, out};
    case Operation::all_reduce:
      return {in, out};
    case Operation::all_gather:
      return {in_place ? block : in, {1, 0, all}};
    case Operation::gather:  // in place on the root alone
      return {in_place && is_root ? block : Part{0, 0, count}, {1, 0, all}};
    case Operation::reduce_scatter:
      return {{in.buffer, 0, all}, in_place ? block : out};
    case Operation::scatter:  // in place on the root alone
      return {{in_place && is_root ? 1 : 0, 0, all}, in_place && is_root ? block : out};
    case Operation::all_to_all:
      return {{in.buffer, 0, all}, {1, 0, all}};
    case Operation::barrier:
    case Operation::send:
    case Operation::recv:
    case Operation::send_recv:
      break;
  }
  return {};
}

}  // namespace meshinfo
