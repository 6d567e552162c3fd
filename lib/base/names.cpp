// SPDX-License-Identifier: BSD-3-Clause
// The spelling of the enumerations of base/.
#include "base/detail/text.hpp"
#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/log.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"

namespace rankmesh {

std::string_view to_string(DataType type) {
  return detail::name_in(
      {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
       "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"},
      type);
}

std::string_view to_string(ReduceOp op) {
  return detail::name_in({"sum", "prod", "min", "max", "avg"}, op);
}

std::string_view to_string(LogLevel level) {
  return detail::name_in({"debug", "info", "warning"}, level);
}

std::string_view to_string(LogChoice choice) {
  return detail::name_in({"debug", "info", "warning", "reports", "off"}, choice);
}

std::string_view to_string(Operation operation) {
  const auto index = static_cast<std::size_t>(operation);
  return index < operation_count ? operation_facts[index].name : "?";
}

std::string_view to_string(MemoryKind kind) { return kind == MemoryKind::host ? "host" : "device"; }

}  // namespace rankmesh
