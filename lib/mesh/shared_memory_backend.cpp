// SPDX-License-Identifier: BSD-3-Clause
#include "detail/shared_memory_backend.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rankmesh::detail {
namespace {

// The system allocates pages when they are first written, so this limits addresses, not memory.
constexpr std::size_t largest_segment = std::size_t{1} << 30;
constexpr std::size_t largest_slot = 64 << 10;
constexpr std::size_t smallest_slot = 4 << 10;

// Returns the number of communicators that the plan creates for earlier families. The same on every
// rank.
std::size_t groups_before(const MeshPlan& plan, std::size_t family) {
  std::size_t count = 0;
  for (std::size_t f = 0; f < family; ++f) {
    if (plan.needs_creation(f)) ++count;
    if (plan.has_communicators(f)) count += plan.options(f).duplicates.size();
  }
  return count;
}

// Groups with more members send messages over MPI, because each pair of members needs a ring.
constexpr std::int64_t most_members_with_rings = 16;

// Returns the bytes that the rings of a group take, in which each of some members gets messages
// from each of `senders` members.
std::size_t bytes_of_rings(std::size_t receivers, std::int64_t senders) {
  if (senders > most_members_with_rings) return 0;
  return receivers * static_cast<std::size_t>(senders) * shm::Ring::size();
}

// Returns the bytes that the rings of the first `groups` communicators of the plan take on a node.
// The same on every rank of the node.
std::size_t bytes_of_rings(const MeshPlan& plan, std::size_t ranks_on_node, std::size_t groups) {
  std::size_t bytes = 0;
  std::size_t number = 0;
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const std::size_t end = groups_before(plan, f + 1);
    const std::int64_t senders =
        std::min(plan.families()[f].group_size(), static_cast<std::int64_t>(ranks_on_node));
    for (; number < std::min(end, groups); ++number)
      bytes += bytes_of_rings(ranks_on_node, senders);
  }
  return bytes;
}

std::vector<Rank> ranks_of_node(const Placement& placement, std::int32_t node) {
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < placement.world_size(); ++r)
    if (placement.node(r) == node) ranks.emplace_back(r);
  return ranks;
}

}  // namespace

SharedMemoryBackend::SharedMemoryBackend(std::shared_ptr<const MeshPlan> plan, Placement placement,
                                         mpi::Node node, std::shared_ptr<ControlPlane> control,
                                         SingleCopy single_copy)
    : plan_{std::move(plan)},
      placement_{std::move(placement)},
      node_{std::move(node)},
      control_{std::move(control)} {
  const auto members = static_cast<std::size_t>(node_.comm.view().size());
  const std::size_t groups = groups_before(*plan_, plan_->families().size());
  if (members == 1 || groups == 0) {
    why_not_ = "no other rank is on this node";
    return;
  }
  rings_ = bytes_of_rings(*plan_, members, groups);
  const auto total = [&](std::size_t slot) {
    return rings_ + groups * members * shm::Area::size(slot);
  };
  slot_bytes_ = largest_slot;
  while (slot_bytes_ > smallest_slot && total(slot_bytes_) > largest_segment) slot_bytes_ /= 2;
  try {
    segment_ =
        SharedSegment{node_.comm.view(), total(slot_bytes_), control_->monitor,
                      wait_point("the creation of the node's shared memory"), control_->deadline()};
  } catch (const SharedMemoryError& error) {
    why_not_ = error.message();  // the same on all ranks of the node
    control_->log(LogLevel::warning, fmt::format("groups inside this node use MPI: {}", why_not_));
    return;
  }
  memory_ = std::make_shared<NodeMemory>(
      node_.comm.view(), ranks_of_node(placement_, placement_.node(control_->rank())), single_copy,
      control_->monitor, wait_point("the reads of the memory of the node's processes"),
      control_->deadline());
}

WaitPoint SharedMemoryBackend::wait_point(const std::string& activity) const {
  const auto ranks = ranks_of_node(placement_, placement_.node(control_->rank()));
  return WaitPoint::of(RankSet::of(ranks), activity, activity);
}

// Groups of the plan are numbered in the order in which the plan creates them.
std::size_t SharedMemoryBackend::number_of(const GroupDescription& group) const {
  const std::size_t f = group.families.front();
  std::size_t number = groups_before(*plan_, f);
  if (group.duplicate_key.empty()) return number;
  const auto& keys = plan_->options(f).duplicates;
  number += plan_->needs_creation(f) ? 1 : 0;
  return number +
         static_cast<std::size_t>(std::ranges::find(keys, group.duplicate_key) - keys.begin());
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
    place.locals.push_back(placement_.local_rank(rank));
  }
  place.is_oversubscribed = node_.comm.view().size() > node_.cores;
  place.names_of_coordinators = group.names;
  place.ranks = group.ranks;
  place.names = control_->names;
  place.processes = memory_;
  return place;
}

ShmTransport::Place SharedMemoryBackend::place_of(const GroupDescription& group) const {
  const auto ranks_on_node = static_cast<std::size_t>(node_.comm.view().size());
  const std::size_t number = number_of(group);
  const std::size_t first = number * ranks_on_node;
  ShmTransport::Place place = members_of(group);
  place.slot_bytes = slot_bytes_;
  for (const std::int32_t local : place.locals)
    place.areas.push_back(segment_.data() + rings_ +
                          (first + static_cast<std::size_t>(local)) * shm::Area::size(slot_bytes_));
  const std::int64_t senders = std::min(plan_->families()[group.families.front()].group_size(),
                                        static_cast<std::int64_t>(ranks_on_node));
  if (senders > most_members_with_rings) return place;
  std::byte* const rings = segment_.data() + bytes_of_rings(*plan_, ranks_on_node, number);
  add_rings(place, [&](std::size_t from, std::size_t to) {
    return rings +
           (static_cast<std::size_t>(place.locals[to]) * static_cast<std::size_t>(senders) + from) *
               shm::Ring::size();
  });
  return place;
}

void SharedMemoryBackend::add_rings(
    ShmTransport::Place& place,
    const std::function<std::byte*(std::size_t from, std::size_t to)>& ring) {
  const auto self = static_cast<std::size_t>(place.self);
  for (std::size_t k = 0; k < place.locals.size(); ++k) {
    place.rings_to.emplace_back(ring(self, k));
    place.rings_from.emplace_back(ring(k, self));
  }
}

SharedTransport SharedMemoryBackend::make_transport(const GroupDescription& group,
                                                    const Recording& recording) const {
  if (group.ranks.size() == 1) return {};
  if (std::string why = why_not(group); !why.empty()) return {nullptr, std::move(why)};
  ShmTransport::Place place = place_of(group);
  place.recording = recording;
  return {std::make_unique<ShmTransport>(std::move(place), shm::Limits{}), {}};
}

SharedTransport SharedMemoryBackend::make_dynamic_transport(const GroupDescription& group,
                                                            const mpi::CommunicatorView& comm,
                                                            const Recording& recording) const {
  if (group.ranks.size() == 1) return {};
  if (group.nodes > 1) return {nullptr, "its members are on several nodes"};
  ShmTransport::Place place = members_of(group);
  place.recording = recording;
  place.slot_bytes = largest_slot;
  const std::size_t size = shm::Area::size(place.slot_bytes);
  const std::size_t members = place.locals.size();
  const std::size_t rings = bytes_of_rings(members, static_cast<std::int64_t>(members));
  try {
    const std::string activity = "the creation of the shared memory of " + group.name;
    place.memory = std::make_shared<SharedSegment>(
        comm, rings + size * members, control_->monitor,
        WaitPoint::of(group.ranks, activity, "shared memory of " + group.identity),
        control_->deadline());
  } catch (const SharedMemoryError& error) {
    control_->log(LogLevel::warning,
                  fmt::format("'{}' uses MPI inside its node: {}", group.name, error.message()));
    return {nullptr, error.message()};
  }
  for (std::size_t k = 0; k < members; ++k)
    place.areas.push_back(place.memory->data() + rings + k * size);
  if (rings != 0)
    add_rings(place, [&](std::size_t from, std::size_t to) {
      return place.memory->data() + (to * members + from) * shm::Ring::size();
    });
  return {std::make_unique<ShmTransport>(std::move(place), shm::Limits{}), {}};
}

std::shared_ptr<const SymmetricWindow> SharedMemoryBackend::allocate(
    std::size_t bytes, const std::vector<std::string_view>& names,
    const std::vector<const GroupDescription*>& groups) {
  const Participants all = control_->all();
  Agreement agreement;
  agreement.add("bytes of symmetric memory", fmt::format("{}", bytes));
  agreement.advise("pass the same count and the same families to allocate_symmetric on all ranks");
  agreement.add("families of symmetric memory", fmt::format("{}", fmt::join(names, ",")));
  all.verify("the allocation of symmetric memory", agreement);
  // The parts of the ranks begin at different offsets within a page. Otherwise equal indices of
  // many ranks would use the same sets of a cache.
  const std::size_t page = 4096;
  auto window = std::make_shared<SymmetricWindow>();
  window->stride = (bytes + page - 1) / page * page + 256;
  window->bytes = bytes;
  window->local_rank = placement_.local_rank(control_->rank());
  std::string failure;  // allocation may fail on one node only
  SharedSegment segment;
  try {
    segment = SharedSegment{
        node_.comm.view(), window->stride * static_cast<std::size_t>(node_.comm.view().size()),
        control_->monitor, wait_point("the creation of symmetric memory"), control_->deadline()};
  } catch (const SharedMemoryError& error) {
    if (placement_.node_count() == 1) throw;
    failure = error.message();
  }
  if (placement_.node_count() > 1) all.verify("the creation of symmetric memory", failure);
  window->base = segment.data();
  for (const GroupDescription* group : groups)
    if (group->ranks.size() > 1 && why_not(*group).empty())
      window->groups.push_back(place_of(*group).key());
  allocations_.push_back({std::move(segment), window});
  return window;
}

void SharedMemoryBackend::close_windows() noexcept {
  for (Allocation& allocation : allocations_) allocation.window->is_open = false;
  allocations_.clear();
}

void SharedMemoryBackend::close() {
  segment_ = {};
  node_.comm.free();
}

}  // namespace rankmesh::detail
