// SPDX-License-Identifier: BSD-3-Clause
#include "detail/segment_layout.hpp"

#include <algorithm>

#include "transport/detail/node_memory.hpp"
#include "transport/shm/area.hpp"
#include "transport/shm/ring.hpp"

namespace rankmesh::detail {
namespace {

// The system allocates pages when they are first written, so this limits addresses, not memory.
constexpr std::size_t largest_segment = std::size_t{1} << 30;
constexpr std::size_t smallest_slot = 4 << 10;
// No group of a node has rings if all of them would take more.
constexpr std::size_t most_bytes_of_rings = largest_segment / 4;

}  // namespace

// Slots are smaller where many ranks in many groups would need more than the largest segment.
SegmentLayout::SegmentLayout(const MeshPlan& plan, std::size_t ranks_on_node)
    : ranks_{ranks_on_node} {
  const std::size_t begin_of_rings = NodeMemory::size(ranks_);
  end_of_rings_ = begin_of_rings;
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const std::int64_t size = plan.families()[f].group_size();
    if (plan.needs_creation(f)) add_group(size);
    if (plan.has_communicators(f))
      for (std::size_t k = 0; k < plan.options(f).duplicates.size(); ++k) add_group(size);
  }
  if (end_of_rings_ - begin_of_rings > most_bytes_of_rings) {
    has_rings_ = false;
    end_of_rings_ = begin_of_rings;
  }
  const std::size_t areas = groups_.size() * ranks_;
  const auto total = [&] { return end_of_rings_ + areas * shm::Area::size(slot_bytes_); };
  while (slot_bytes_ > smallest_slot && total() > largest_segment) slot_bytes_ /= 2;
  if (areas != 0) bytes_ = total();
}

SegmentLayout::SegmentLayout(std::size_t members) : ranks_{members} {
  add_group(static_cast<std::int64_t>(members));
  bytes_ = area(1, 0);
}

// Each rank of the node has a place for the rings from the members of its group.
void SegmentLayout::add_group(std::int64_t size) {
  const std::int64_t senders = std::min(size, static_cast<std::int64_t>(ranks_));
  GroupRings group{0, end_of_rings_};
  if (senders <= most_members_with_rings) group.senders = static_cast<std::size_t>(senders);
  end_of_rings_ += ranks_ * group.senders * shm::Ring::size();
  groups_.push_back(group);
}

std::size_t SegmentLayout::ring(std::size_t group, std::size_t from, std::size_t local) const {
  const GroupRings& g = groups_[group];
  return g.rings + (local * g.senders + from) * shm::Ring::size();
}

std::size_t SegmentLayout::area(std::size_t group, std::size_t local) const {
  return end_of_rings_ + (group * ranks_ + local) * shm::Area::size(slot_bytes_);
}

}  // namespace rankmesh::detail
