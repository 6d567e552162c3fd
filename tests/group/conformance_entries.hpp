// SPDX-License-Identifier: BSD-3-Clause
// The calls of the table of conformance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "group/conformance.hpp"

namespace rankmesh_test {

/// The form of a call.
enum class Form { blocking, in_place, async, async_in_place };
constexpr bool is_in_place(Form form) {
  return form == Form::in_place || form == Form::async_in_place;
}
constexpr bool is_async(Form form) { return form == Form::async || form == Form::async_in_place; }
constexpr const char* to_string(Form form) {
  constexpr const char* names[] = {"", " in place", " async", " async in place"};
  return names[static_cast<std::size_t>(form)];
}

/// One call of the table.
struct Entry {
  rankmesh::Operation operation{};
  bool has_blocks = false;
  Form form{};
  rankmesh::DataType type{};
  rankmesh::ReduceOp op{};
  std::int64_t count = 0, number = 0;
};

/// Returns all calls of these parts of the table, in an order in which neighbours have little in
/// common.
std::vector<Entry> entries(const Conformance& table);

}  // namespace rankmesh_test
