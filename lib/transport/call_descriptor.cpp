// SPDX-License-Identifier: BSD-3-Clause
#include "detail/call_descriptor.hpp"

namespace rankmesh::detail {

CallDescriptor describe_completely(const Call& call) {
  const Call& of_program = call.original != nullptr ? *call.original : call;
  CallDescriptor descriptor = is_point_to_point(call.operation)
                                  ? describe_message(of_program)
                                  : describe(of_program, call.operation);
  if (call.is_on_device()) descriptor.kind |= CallDescriptor::on_device;
  return descriptor;
}

}  // namespace rankmesh::detail
