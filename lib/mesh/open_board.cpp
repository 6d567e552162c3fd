// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_board.hpp"

#include <memory>
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
  std::vector<Rank> ranks{control.rank()};
  std::shared_ptr<SharedSegment> owner;
  if (segment.segment) {
    ranks = ranks_of_node(control);
    owner = std::make_shared<SharedSegment>(std::move(segment.segment));
  }
  std::byte* const memory = owner == nullptr ? nullptr : owner->data();
  return std::make_shared<NodeBoard>(memory, std::move(owner),
                                     std::exchange(segment.descriptor, -1), std::move(ranks),
                                     control.rank(), control.recorder());
}

}  // namespace rankmesh::detail
