// SPDX-License-Identifier: BSD-3-Clause
// The calls of the table of conformance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rankmesh/conformance/conformance.hpp"

namespace rankmesh::conformance {

/// The form of a call.
enum class CallForm { blocking, in_place, async, async_in_place };
constexpr bool is_in_place(CallForm form) {
  return form == CallForm::in_place || form == CallForm::async_in_place;
}
constexpr bool is_async(CallForm form) {
  return form == CallForm::async || form == CallForm::async_in_place;
}
constexpr const char* to_string(CallForm form) {
  constexpr const char* names[] = {"", " in place", " async", " async in place"};
  return names[static_cast<std::size_t>(form)];
}

/// One call of the table.
struct TableEntry {
  Operation operation{};
  bool has_blocks = false;
  CallForm form{};
  DataType type{};
  ReduceOp op{};
  std::int64_t count = 0, number = 0;

  /// Returns the number of the operation and the form.
  [[nodiscard]] std::size_t kind() const {
    return static_cast<std::size_t>(operation) * 8 + (has_blocks ? 4U : 0U) +
           static_cast<std::size_t>(form);
  }
};

/// Returns the calls of these parts of the table, of each operation and form the same share, in an
/// order in which neighbours have little in common.
std::vector<TableEntry> entries(const Table& table);

}  // namespace rankmesh::conformance
