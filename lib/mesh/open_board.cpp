// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_board.hpp"

#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rankmesh::detail {

SegmentRequest board_request(const ControlPlane& control) {
  const std::size_t ranks = ranks_of_node(control).size();
  return {"the creation of the node's board", ranks == 1 ? 0 : NodeBoard::bytes(ranks)};
}

std::shared_ptr<NodeBoard> open_board(NodeSegment segment, const ControlPlane& control) {
  if (segment.error)
    control.log(LogLevel::warning,
                fmt::format("the ranks of this node cannot see what the others wait for: {}",
                            segment.error->message()));
  if (segment.segment) {
    auto owner = std::make_shared<SharedSegment>(std::move(segment.segment));
    std::byte* const memory = owner->data();
    return std::make_shared<NodeBoard>(memory, std::move(owner),
                                       std::exchange(segment.descriptor, -1),
                                       ranks_of_node(control), control.rank(), control.recorder());
  }
  // new with an alignment, because slots begin at cache lines.
  constexpr std::align_val_t alignment{4096};
  const std::size_t bytes = NodeBoard::bytes(1);
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment));
  std::memset(memory, 0, bytes);
  std::shared_ptr<void> owner{memory, [](void* m) { ::operator delete(m, alignment); }};
  return std::make_shared<NodeBoard>(memory, std::move(owner), -1,
                                     std::vector<Rank>{control.rank()}, control.rank(),
                                     control.recorder());
}

}  // namespace rankmesh::detail
