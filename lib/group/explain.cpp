// What the router would do, in words.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "detail/router.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh {

RouteExplanation GroupCoordinator::explain(Operation operation, std::int64_t bytes, MemoryKind kind,
                                           DataType type, bool capture) const {
  // A call of that size without memory: transports answer by sizes and types.
  Call call{.operation = operation};
  const bool has_size = bytes >= 0;
  const std::int64_t whole =
      operation == Operation::barrier
          ? 0
          : std::max<std::int64_t>(bytes, 0) / static_cast<std::int64_t>(size_of(type));
  const std::int64_t block = whole / size_;
  call.in = {nullptr, whole, type, kind};
  call.out = {nullptr, whole, type, kind};
  if (operation == Operation::all_gather || operation == Operation::gather) call.in.count = block;
  if (operation == Operation::reduce_scatter || operation == Operation::scatter)
    call.out.count = block;
  const Blocks blocks{std::vector<std::int64_t>(static_cast<std::size_t>(size_))};
  if (!has_size && !is_point_to_point(operation)) call.in_blocks = call.out_blocks = &blocks;
  std::string no_device = services_->no_device;
  if (no_device.empty()) no_device = "its NCCL communicator is not open";
  RouteExplanation explanation =
      router_->explain(services_->routes, *channel_, call, capture, no_device);
  const bool with_bytes = operation != Operation::barrier && has_size;
  explanation.question =
      fmt::format("{}.{}{} on the {}", name_, rankmesh::to_string(operation),
                  with_bytes ? fmt::format(" of {} bytes", bytes) : "", rankmesh::to_string(kind));
  return explanation;
}

}  // namespace rankmesh
