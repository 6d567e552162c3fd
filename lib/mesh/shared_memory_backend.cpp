// SPDX-License-Identifier: BSD-3-Clause
#include "detail/shared_memory_backend.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "wait/detail/values_of_all.hpp"

namespace rankmesh::detail {
namespace {

// Adds the areas of the members, and the rings between this member and all members.
// @param numbers  Of the members in the layout.
void add_memory(ShmTransport::Place& place, const SegmentLayout& layout, std::size_t group,
                std::byte* data, std::span<const int> numbers) {
  const auto self = static_cast<std::size_t>(place.self);
  const auto number = [&](std::size_t member) { return static_cast<std::size_t>(numbers[member]); };
  place.slot_bytes = layout.slot_bytes();
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    place.areas.push_back(data + layout.area(group, number(k)));
    if (!layout.has_rings(group)) continue;
    place.rings_to.emplace_back(data + layout.ring(group, self, number(k)));
    place.rings_from.emplace_back(data + layout.ring(group, k, number(self)));
  }
}

}  // namespace

SegmentRequest SharedMemoryBackend::request(const SegmentLayout& layout,
                                            const ControlPlane& control, SingleCopy single_copy,
                                            std::shared_ptr<NodeMemory>& memory) {
  std::vector<Rank> ranks = ranks_of_node(control);
  const std::size_t bytes = ranks.size() == 1 ? 0 : layout.bytes();
  return {"the creation of the node's shared memory", bytes,
          [&memory, ranks = std::move(ranks), own = control.placement.local_rank(control.rank()),
           single_copy](std::byte* data) {
            memory = std::make_shared<NodeMemory>(data, ranks, own, single_copy);
          }};
}

SharedMemoryBackend::SharedMemoryBackend(SegmentLayout layout, NodeSegment segment,
                                         std::shared_ptr<NodeMemory> memory,
                                         std::shared_ptr<ControlPlane> control)
    : layout_{std::move(layout)},
      control_{std::move(control)},
      ranks_on_node_{ranks_of_node(*control_)},
      segment_{std::move(segment.segment)} {
  if (segment.error) {
    why_not_ = segment.error->message();  // the same on all ranks of the node
    control_->log(LogLevel::warning, fmt::format("groups inside this node use MPI: {}", why_not_));
  } else if (!segment_) {
    why_not_ = "no other rank is on this node";
  } else {
    memory_ = std::move(memory);
    finish_direct_reads();
  }
  if (control_->placement.node_count() > 1) agree_on_levels();
}

// Waits until all ranks of the node have tried to read each other's memory.
void SharedMemoryBackend::finish_direct_reads() {
  const std::string activity = "the reads of the memory of the node's processes";
  control_->monitor.wait([&] { return memory_->advance(); },
                         WaitPoint::of(RankSet::of(ranks_on_node_), activity, activity),
                         control_->deadline());
}

// The nodes tell each other whether they have shared memory: all members of a group must choose the
// same transports.
void SharedMemoryBackend::agree_on_levels() {
  const bool lacks_memory = ranks_on_node_.size() > 1 && !why_not_.empty();
  all_nodes_share_memory_ = highest_of_all(control_->all(), lacks_memory ? 1 : 0,
                                           "the creation of the shared memory") == 0;
}

std::string SharedMemoryBackend::why_not(const GroupDescription& group) const {
  if (group.nodes > 1) return "its members are on several nodes";
  return why_not_;
}

// The members of a group, without their memory.
ShmTransport::Place SharedMemoryBackend::members_of(const GroupDescription& group) const {
  ShmTransport::Place place;
  for (const Rank rank : group.ranks) {
    if (rank == control_->rank()) place.self = static_cast<int>(place.locals.size());
    place.locals.push_back(control_->placement.local_rank(rank));
  }
  place.is_oversubscribed = !group.has_own_cores;
  place.members = group_members(group, *control_);
  place.processes = memory_;
  return place;
}

ShmTransport::Place SharedMemoryBackend::place_of(const GroupDescription& group) const {
  ShmTransport::Place place = members_of(group);
  add_memory(place, layout_, static_cast<std::size_t>(group.number - 1), segment_.data(),
             place.locals);
  return place;
}

SharedTransport SharedMemoryBackend::make_transport(const GroupDescription& group,
                                                    const Recording& recording) const {
  if (group.ranks.size() == 1) return {};
  if (std::string why = why_not(group); !why.empty()) {
    SharedTransport shared{nullptr, std::move(why)};
    if (group.nodes > 1) add_levels(shared, group);
    return shared;
  }
  ShmTransport::Place place = place_of(group);
  place.recording = recording;
  return {std::make_unique<ShmTransport>(std::move(place), shm::Limits{}), {}};
}

// The members of each node use the areas that the segment has for the group.
void SharedMemoryBackend::add_levels(SharedTransport& shared, const GroupDescription& group) const {
  std::vector<int> node_of;
  std::vector<Rank> here;
  for (const Rank rank : group.ranks) {
    node_of.push_back(control_->placement.node(rank));
    if (control_->placement.node(rank) == control_->placement.node(control_->rank()))
      here.push_back(rank);
  }
  levels::Shape shape{node_of, static_cast<int>(group.ranks.index_of(control_->rank())->value())};
  if (shape.node_count() == shape.size()) {
    shared.why_no_levels = "each of its members is alone on its node";
    return;
  }
  if (!all_nodes_share_memory_) {
    shared.why_no_levels = "a node has no shared memory";
    return;
  }
  for (const Rank rank : group.ranks)
    shape.carriers = std::min(
        shape.carriers,
        control_->placement.cores(control_->placement.node(rank)).value_or(shape.carriers));
  shared.levels.emplace(HierarchicalTransport::Nodes{.shape = std::move(shape)});
  if (here.size() == 1) return;
  GroupDescription members = group;
  members.ranks = RankSet::of(here);
  shared.levels->inside = std::make_unique<ShmTransport>(place_of(members), shm::Limits{});
}

SegmentCreation SharedMemoryBackend::dynamic_memory(const GroupDescription& group) const {
  const bool is_shared = group.ranks.size() > 1 && group.nodes == 1;
  const auto members = static_cast<std::size_t>(group.ranks.size());
  return {{{"the creation of the shared memory of " + group.name,
            is_shared ? SegmentLayout{members}.bytes() : 0}},
          group.ranks.front() == control_->rank()};
}

SharedTransport SharedMemoryBackend::make_dynamic_transport(const GroupDescription& group,
                                                            const mpi::CommunicatorView& comm,
                                                            SegmentCreation& memory,
                                                            const Recording& recording) const {
  if (group.ranks.size() == 1) return {};
  if (group.nodes > 1)
    return {nullptr, "its members are on several nodes", {}, "it was created by new_group"};
  NodeMessages node{*control_, comm, group.ranks, group.identity};
  // The members have met when they created the communicator.
  NodeSegment created = std::move(memory.finish(node, true).front());
  if (created.error) {
    control_->log(LogLevel::warning, fmt::format("'{}' uses MPI inside its node: {}", group.name,
                                                 created.error->message()));
    return {nullptr, created.error->message()};
  }
  ShmTransport::Place place = members_of(group);
  place.recording = recording;
  place.memory = std::make_shared<SharedSegment>(std::move(created.segment));
  std::vector<int> numbers(place.locals.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  add_memory(place, SegmentLayout{numbers.size()}, 0, place.memory->data(), numbers);
  return {std::make_unique<ShmTransport>(std::move(place), shm::Limits{}), {}};
}

std::shared_ptr<const SymmetricWindow> SharedMemoryBackend::allocate(
    std::size_t bytes, const Agreement& agreement,
    const std::vector<const GroupDescription*>& groups) {
  const Participants all = control_->all();
  all.agree("the allocation of symmetric memory", agreement);
  // The parts of the ranks begin at different offsets within a page. Otherwise equal indices of
  // many ranks would use the same sets of a cache.
  const std::size_t page = 4096;
  auto window = std::make_shared<SymmetricWindow>();
  window->stride = (bytes + page - 1) / page * page + 256;
  window->bytes = bytes;
  window->local_rank = control_->placement.local_rank(control_->rank());
  NodeSegment created =
      std::move(make_node_segments(
                    NodeMessages{*control_},
                    {{"the creation of symmetric memory", window->stride * ranks_on_node_.size()}})
                    .front());
  SharedSegment& segment = created.segment;
  // Allocation may fail on one node only.
  if (control_->placement.node_count() > 1)
    all.agree("the creation of symmetric memory", created.error ? created.error->message() : "");
  if (created.error) throw SharedMemoryError{*created.error};
  window->base = segment.data();
  for (const GroupDescription* group : groups)
    if (group->ranks.size() > 1 && reaches(*group))
      window->groups.push_back(place_of(*group).key());
  allocations_.push_back({std::move(segment), window});
  return window;
}

void SharedMemoryBackend::close_windows() noexcept {
  for (Allocation& allocation : allocations_) allocation.window->is_open = false;
  allocations_.clear();
}

}  // namespace rankmesh::detail
