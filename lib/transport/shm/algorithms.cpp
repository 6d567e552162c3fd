// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/algorithms.hpp"

#include "transport/shm/prefix.hpp"

namespace rankmesh::shm {

// Each is defined in the file of its name.
extern const Algorithm all_gather, all_gather_v, all_reduce_flat, all_reduce_split, all_to_all,
    all_to_all_v, barrier, broadcast, direct_reduce, direct_reduce_scatter, gather, gather_v,
    reduce, reduce_scatter, reduce_scatter_v, scatter, scatter_v, symmetric_all_gather,
    symmetric_all_reduce, symmetric_all_to_all, symmetric_broadcast, symmetric_reduce_scatter;

namespace {

struct AlgorithmRow {
  Choices choices;
  const Algorithm* small = nullptr;
  const Algorithm* of_blocks = nullptr;
};

// In the order of Operation.
constexpr std::array<AlgorithmRow, operation_count> rows{{
    {{&barrier}, &barrier},
    {{&symmetric_broadcast, &broadcast}, &broadcast},
    {{&direct_reduce, &reduce}, &reduce},
    {{&symmetric_all_reduce, &all_reduce_flat, &all_reduce_split}, &all_reduce_flat},
    {{&symmetric_all_gather, &all_gather}, &all_gather, &all_gather_v},
    {{&symmetric_reduce_scatter, &direct_reduce_scatter, &reduce_scatter},
     &reduce_scatter,
     &reduce_scatter_v},
    {{&gather}, &gather, &gather_v},
    {{&scatter}, &scatter, &scatter_v},
    {{&symmetric_all_to_all, &all_to_all}, &all_to_all, &all_to_all_v},
    {{}},  // send
    {{}},  // recv
    {{}},  // send_recv
    {{&prefix<Operation::scan, 1>}, &prefix<Operation::scan, 1>},
    {{&prefix<Operation::exscan, 0>}, &prefix<Operation::exscan, 0>},
}};

template <class Column>
constexpr auto column(Column AlgorithmRow::*which) {
  std::array<Column, operation_count> all{};
  for (std::size_t o = 0; o < operation_count; ++o) all[o] = rows[o].*which;
  return all;
}

}  // namespace

constexpr std::array<Choices, operation_count> algorithms = column(&AlgorithmRow::choices);
constexpr std::array<const Algorithm*, operation_count> small_algorithms =
    column(&AlgorithmRow::small);
constexpr std::array<const Algorithm*, operation_count> algorithms_of_blocks =
    column(&AlgorithmRow::of_blocks);

}  // namespace rankmesh::shm
