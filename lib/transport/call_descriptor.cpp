// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_descriptor.hpp"

#include <fmt/format.h>

namespace rankmesh::detail {
namespace {

std::string elements(const CallDescriptor& call, const std::string& counts) {
  const bool is_user = call.has(CallDescriptor::user);
  const std::int64_t bytes = is_user ? call.rows_or_bytes() : 1;
  const std::string number =
      counts.empty() ? fmt::format("{}", bytes == 0 ? 0 : call.count / bytes) : counts;
  return is_user ? fmt::format("{} x {} bytes", number, bytes)
                 : fmt::format("{} x {}", number, to_string(call.type()));
}

bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce ||
         operation == Operation::gather || operation == Operation::scatter;
}

}  // namespace

CallDescriptor describe_completely(const Call& call) {
  const Call& of_program = call.original != nullptr ? *call.original : call;
  CallDescriptor descriptor = describe(of_program, call.operation);
  if (call.in.kind == MemoryKind::device || call.out.kind == MemoryKind::device)
    descriptor.kind |= CallDescriptor::on_device;
  return descriptor;
}

std::string to_string(const CallDescriptor& call, const std::string& group,
                      const std::string& counts) {
  std::string text = fmt::format("{}.{}{}(", group, to_string(call.operation()),
                                 call.has(CallDescriptor::blocks) ? "_v" : "");
  if (call.operation() == Operation::barrier) return text + ")";
  text += elements(call, counts);
  if (call.has(CallDescriptor::user))
    text += ", user reduction";
  else if (reduces(call.operation()))
    text += fmt::format(", {}", to_string(call.reduction()));
  if (has_root(call.operation())) text += fmt::format(", root {}", call.root());
  if (call.has(CallDescriptor::along_axis))
    text += fmt::format(", {} rows per block", call.rows_or_bytes());
  if (call.has(CallDescriptor::in_place)) text += ", in place";
  if (call.has(CallDescriptor::symmetric)) text += ", symmetric memory";
  if (call.has(CallDescriptor::on_device)) text += ", device memory";
  return text + ")";
}

}  // namespace rankmesh::detail
