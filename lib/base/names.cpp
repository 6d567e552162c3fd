// SPDX-License-Identifier: BSD-3-Clause
// The spelling of the enumerations of base/.
#include <iterator>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/log.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"

namespace rankmesh {

std::string_view to_string(DataType type) {
  constexpr std::string_view names[] = {
      // in the order of DataType
      "int8",   "uint8",   "int16",    "uint16",  "int32",   "uint32",      "int64",
      "uint64", "float16", "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"};
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(names) ? names[index] : "?";
}

std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::prod:
      return "prod";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::avg:
      return "avg";
  }
  return "?";
}

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
  }
  return "?";
}

std::string_view to_string(LogChoice choice) {
  switch (choice) {
    case LogChoice::debug:
      return "debug";
    case LogChoice::info:
      return "info";
    case LogChoice::warning:
      return "warning";
    case LogChoice::reports:
      return "reports";
    case LogChoice::off:
      return "off";
  }
  return "?";
}

std::string_view to_string(Operation operation) {
  const auto index = static_cast<std::size_t>(operation);
  return index < operation_count ? operation_facts[index].name : "?";
}

std::string_view to_string(MemoryKind kind) { return kind == MemoryKind::host ? "host" : "device"; }

}  // namespace rankmesh
