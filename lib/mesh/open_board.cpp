// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_board.hpp"

#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rankmesh/transport/shared_segment.hpp"

namespace rankmesh::detail {

std::shared_ptr<NodeBoard> open_board(const Placement& placement, const mpi::Node& node,
                                      ControlPlane& control) {
  std::vector<Rank> ranks;
  std::vector<int> members;
  for (std::int64_t r = 0; r < placement.world_size(); ++r)
    if (placement.node(r) == placement.node(control.rank())) {
      ranks.emplace_back(r);
      members.push_back(static_cast<int>(r));
    }
  if (ranks.size() > 1) {
    try {
      const std::string activity = "the creation of the node's board";
      int descriptor = -1;
      auto segment = std::make_shared<SharedSegment>(
          node.comm.view(), NodeBoard::bytes(ranks.size()), control.monitor,
          WaitPoint::of(members, activity, activity), control.deadline(),
          SharedSegment::Backing::automatic, &descriptor);
      std::byte* const memory = segment->data();
      return std::make_shared<NodeBoard>(memory, std::move(segment), descriptor, std::move(ranks),
                                         control.rank(), control.recorder());
    } catch (const SharedMemoryError& error) {
      control.log(LogLevel::warning,
                  fmt::format("the ranks of this node cannot see what the others wait for: {}",
                              error.message()));
    }
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
