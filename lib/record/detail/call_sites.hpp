// SPDX-License-Identifier: BSD-3-Clause
// Notes in a record where in the program its calls are made.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rankmesh::detail {

/// Numbers the places from which the program calls rankmesh. Each place becomes a line of JSON in
/// the record: the return addresses of the functions that call each other there, as offsets into
/// the files of the program. `meshinfo trace` finds their source lines, also after the process has
/// ended.
///
/// Cost: a few microseconds per call, because the stack is unwound. Thread safety: the thread that
/// uses the mesh calls the functions.
class CallSites {
 public:
  /// @param add_line  Adds a line to the record; returns whether it fits.
  explicit CallSites(std::function<bool(const std::string&)> add_line);

  /// Returns the number of the place that has called rankmesh, from 1; 0 if it does not fit.
  std::uint64_t number_of_caller();

 private:
  using Stack = std::vector<std::uintptr_t>;  // return addresses, the innermost first
  // A file of the program, where the process has it in memory.
  struct Module {
    std::uintptr_t begin, end, bias;
    std::string path;
    bool is_rankmesh;
  };
  [[nodiscard]] Stack stack_of_program();
  [[nodiscard]] const Module* module_of(std::uintptr_t address);
  [[nodiscard]] std::optional<std::uint64_t> line_of(const Module& module);
  [[nodiscard]] std::uint64_t add(const Stack& stack);

  std::function<bool(const std::string&)> add_line_;
  std::vector<Module> modules_;
  std::map<std::string, std::uint64_t> file_lines_;  // by path, counted from 0
  std::map<Stack, std::uint64_t> sites_;
  std::uint64_t last_ = 0;  // the number of places in the record
};

}  // namespace rankmesh::detail
