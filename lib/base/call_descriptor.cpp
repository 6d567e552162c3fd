// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/call_descriptor.hpp"

#include <array>

#include <fmt/format.h>

#include "detail/bucket_mark.hpp"

namespace rankmesh {
namespace {

std::string elements(const CallDescriptor& call, const std::string& counts) {
  const bool is_user = call.has(CallDescriptor::user);
  const std::int64_t bytes = is_user ? call.rows_or_bytes() : 1;
  const std::string number =
      counts.empty() ? fmt::format("{}", bytes == 0 ? 0 : call.count / bytes) : counts;
  const bool has_type = !is_user || (call.type() != DataType::uint8 &&
                                     bytes == static_cast<std::int64_t>(size_of(call.type())));
  return !has_type ? fmt::format("{} x {} bytes", number, bytes)
                   : fmt::format("{} x {}", number, to_string(call.type()));
}

std::string ends_of_message(const CallDescriptor& call) {
  switch (call.operation()) {
    case Operation::send:
      return fmt::format("to member {}", call.peer());
    case Operation::recv:
      return fmt::format("from member {}", call.peer());
    default:
      return fmt::format("to member {}, from member {}", call.peer(), call.source());
  }
}

}  // namespace

std::string_view detail::to_string(UserFunction function) {
  constexpr std::array<std::string_view, 24> names{"",
                                                   "all_gather_v",
                                                   "all_to_all_v",
                                                   "gather_v",
                                                   "scatter_v",
                                                   "print_in_order",
                                                   "check_equal",
                                                   "broadcast_message",
                                                   "gather_messages",
                                                   "all_gather_messages",
                                                   "Bucket",
                                                   "ShardedBuffer",
                                                   "ExpertDispatcher",
                                                   "Lockstep",
                                                   "ControlQueue",
                                                   "Redistribution",
                                                   "save_checkpoint",
                                                   "load_checkpoint",
                                                   "KeptTensors::keep",
                                                   "KeptTensors::restore",
                                                   "ExpertDispatcher::dispatch",
                                                   "ExpertDispatcher::dispatch_choices",
                                                   "ExpertDispatcher::combine",
                                                   "ExpertDispatcher::collect_choices"};
  const auto number = static_cast<std::size_t>(function);
  return number < names.size() ? names[number] : "another function";
}

std::string to_string(const CallDescriptor& call, const std::string& group,
                      const std::string& counts) {
  const bool is_collective = !is_point_to_point(call.operation());
  const auto mark = detail::BucketMark::of(is_collective ? call.bucket() : 0);
  std::string text = group + ".";
  if (mark.function != detail::UserFunction::none)
    text += fmt::format("{}: ", detail::to_string(mark.function));
  text += fmt::format("{}{}(", to_string(call.operation()),
                      call.has(CallDescriptor::blocks) ? "_v" : "");
  if (!has_data(call.operation())) return text + ")";
  if (!is_collective)
    return text + fmt::format("{} x {}, {}, tag {})", call.count, to_string(call.type()),
                              ends_of_message(call), call.tag());
  text += elements(call, counts);
  if (call.has(CallDescriptor::user))
    text +=
        call.has(CallDescriptor::commutative) ? ", commutative user reduction" : ", user reduction";
  else if (reduces(call.operation()))
    text += fmt::format(", {}", to_string(call.reduction()));
  if (has_root(call.operation())) text += fmt::format(", root {}", call.root());
  if (call.order() != ArrayOrder::any)
    text += call.order() == ArrayOrder::row_major ? ", row-major" : ", column-major";
  if (call.has(CallDescriptor::along_axis))
    text += fmt::format(", {} rows per block", call.rows_or_bytes());
  if (mark.number > 0) {
    text += fmt::format(", bucket {}", mark.number - 1);
    if (mark.place > 0)
      text += fmt::format(" with buffer {} in place {}", mark.earlier_place - 1, mark.place - 1);
  }
  if (call.has(CallDescriptor::in_place)) text += ", in place";
  if (call.has(CallDescriptor::symmetric)) text += ", symmetric memory";
  if (call.has(CallDescriptor::on_device))
    text += ", device memory";
  else if (call.has(CallDescriptor::meeting))
    text += ", outside shared memory";
  return text + ")";
}

}  // namespace rankmesh
