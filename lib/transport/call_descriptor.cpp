// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_descriptor.hpp"

#include <fmt/format.h>

namespace rankmesh::detail {
namespace {

std::string elements(const CallDescriptor& descriptor, DataType type, const std::string& counts) {
  if ((descriptor.kind & CallDescriptor::user) != 0) {
    const auto bytes = static_cast<std::int64_t>(descriptor.detail);
    const std::string number =
        counts.empty() ? fmt::format("{}", bytes == 0 ? 0 : descriptor.count / bytes) : counts;
    return fmt::format("{} x {} bytes", number, bytes);
  }
  if (!counts.empty()) return fmt::format("{} x {}", counts, to_string(type));
  return fmt::format("{} x {}", descriptor.count, to_string(type));
}

}  // namespace

std::string to_string(const CallDescriptor& descriptor, const std::string& group,
                      const std::string& counts) {
  const auto operation = static_cast<Operation>(descriptor.kind & 0xff);
  const auto has = [&](CallDescriptor::Form form) { return (descriptor.kind & form) != 0; };
  std::string text = fmt::format("{}.{}{}(", group, to_string(operation),
                                 has(CallDescriptor::blocks) ? "_v" : "");
  if (operation == Operation::barrier) return text + ")";
  text += elements(descriptor, static_cast<DataType>(descriptor.kind >> 8 & 0xff), counts);
  if (has(CallDescriptor::user))
    text += ", user reduction";
  else if (reduces(operation))
    text += fmt::format(", {}", to_string(static_cast<ReduceOp>(descriptor.kind >> 16 & 0xff)));
  if (operation == Operation::broadcast || operation == Operation::reduce ||
      operation == Operation::gather || operation == Operation::scatter)
    text += fmt::format(", root {}", descriptor.kind >> 32);
  if (has(CallDescriptor::along_axis)) text += fmt::format(", {} rows per block", descriptor.detail);
  if (has(CallDescriptor::in_place)) text += ", in place";
  if (has(CallDescriptor::symmetric)) text += ", symmetric memory";
  return text + ")";
}

}  // namespace rankmesh::detail
