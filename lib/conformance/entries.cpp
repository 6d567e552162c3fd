// SPDX-License-Identifier: BSD-3-Clause
#include "detail/entries.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include <fmt/format.h>

#include "detail/plain_arithmetic.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::conformance {

namespace {

bool has_form(Operation operation, bool has_blocks, CallForm form) {
  const InPlace in_place = facts_of(operation).in_place;
  const bool has_in_place =
      in_place != InPlace::none && in_place != InPlace::block_of_input_on_device;
  if (has_blocks) return has_v_form(operation) && !is_in_place(form);
  return !is_in_place(form) || has_in_place;
}

std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (std::size_t o = 0; o < operation_count; ++o)
    if (const auto operation = static_cast<Operation>(o);
        operation != Operation::send && operation != Operation::recv)
      all.push_back(operation);
  return all;
}

bool can_be_reduced(Operation operation, ReduceOp op) {
  return facts_of(operation).awaited != Awaited::earlier || op != ReduceOp::avg;
}

}  // namespace

std::vector<TableEntry> entries(const Table& table) {
  if (table.types.empty() || table.share < 1 || table.turn < 0)
    throw UsageError{fmt::format("a table of conformance with {} types, share {} and turn {}",
                                 table.types.size(), table.share, table.turn),
                     "give at least one type, a share from 1, and a turn from 0"};
  constexpr std::int64_t rare = 10'000;
  std::vector<TableEntry> result;
  const auto add = [&](TableEntry entry) {
    entry.number = std::ssize(result);
    result.push_back(entry);
  };
  for (const Operation operation : table.operations.empty() ? all_operations() : table.operations)
    for (const bool has_blocks : {false, true})
      for (const CallForm form :
           {CallForm::blocking, CallForm::in_place, CallForm::async, CallForm::async_in_place}) {
        if (!has_form(operation, has_blocks, form)) continue;
        for (const std::int64_t count : table.counts) {
          TableEntry entry{operation, has_blocks, form, table.types.front(), ReduceOp::sum, count};
          if (!reduces(operation)) {  // the type does not matter to the bytes
            entry.type = table.types[result.size() % table.types.size()];
            add(entry);
            continue;
          }
          for (std::size_t t = 0; t < table.types.size(); ++t)
            for (std::size_t k = 0; k < all_reductions.size(); ++k) {
              entry.type = table.types[t];
              entry.op = all_reductions[k];
              // Large calls of a type take turns at the reductions.
              const std::size_t only = (t + static_cast<std::size_t>(form)) % all_reductions.size();
              if (can_be_reduced(operation, entry.op) && (count < rare || k == only)) add(entry);
            }
        }
      }
  // Neighbours in this order have little in common.
  std::shuffle(result.begin(), result.end(), std::mt19937{1});
  std::map<std::size_t, int> all, calls;  // of each kind
  for (const TableEntry& entry : result) ++all[entry.kind()];
  std::erase_if(result, [&](const TableEntry& entry) {
    const int share = std::min(table.share, all[entry.kind()]);  // at least one call
    return calls[entry.kind()]++ % share != table.turn % share;
  });
  return result;
}

}  // namespace rankmesh::conformance
