// SPDX-License-Identifier: BSD-3-Clause
#include "detail/shared_memory_backend.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

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

// Groups with more members send messages over MPI, because each pair of members needs a ring. So do
// all groups of a node on which the rings would take more than this part of the largest segment.
constexpr std::int64_t most_members_with_rings = 16;
constexpr std::size_t most_bytes_of_rings = largest_segment / 4;

// Returns the members of a family's group that one node can have, if they have rings; otherwise 0.
std::size_t senders_of(const MeshPlan& plan, std::size_t family, std::size_t ranks_on_node) {
  const std::int64_t senders =
      std::min(plan.families()[family].group_size(), static_cast<std::int64_t>(ranks_on_node));
  return senders > most_members_with_rings ? 0 : static_cast<std::size_t>(senders);
}

// Returns the bytes that the rings of the first `groups` communicators of the plan take on a node.
// The same on every rank of the node.
std::size_t bytes_of_rings(const MeshPlan& plan, std::size_t ranks_on_node, std::size_t groups) {
  std::size_t bytes = 0;
  std::size_t number = 0;
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const std::size_t end = groups_before(plan, f + 1);
    for (; number < std::min(end, groups); ++number)
      bytes += ranks_on_node * senders_of(plan, f, ranks_on_node) * shm::Ring::size();
  }
  return bytes;
}

// The segment of a node: what its processes tell each other, the rings of all groups, and the areas
// of all groups.
struct Size {
  std::size_t slot = largest_slot;
  std::size_t processes = 0;
  std::size_t rings = 0;
  std::size_t bytes = 0;
};

// Slots are smaller where many ranks in many groups would need more than the largest segment.
Size size_of(const MeshPlan& plan, std::size_t ranks) {
  const std::size_t groups = groups_before(plan, plan.families().size());
  const std::size_t areas = groups * ranks;
  Size size;
  size.processes = NodeMemory::size(ranks);
  size.rings = bytes_of_rings(plan, ranks, groups);
  if (size.rings > most_bytes_of_rings) size.rings = 0;
  const auto total = [&] {
    return size.processes + size.rings + areas * shm::Area::size(size.slot);
  };
  while (size.slot > smallest_slot && total() > largest_segment) size.slot /= 2;
  if (areas != 0) size.bytes = total();
  return size;
}

}  // namespace

SegmentRequest SharedMemoryBackend::request(const MeshPlan& plan, const Placement& placement,
                                            Rank self) {
  const std::size_t ranks = ranks_of_node(placement, self).size();
  return {"the creation of the node's shared memory", ranks == 1 ? 0 : size_of(plan, ranks).bytes};
}

SharedMemoryBackend::SharedMemoryBackend(std::shared_ptr<const MeshPlan> plan, Placement placement,
                                         NodeSegment segment, std::shared_ptr<ControlPlane> control,
                                         SingleCopy single_copy)
    : plan_{std::move(plan)},
      placement_{std::move(placement)},
      ranks_on_node_{ranks_of_node(placement_, control->rank()).size()},
      control_{std::move(control)},
      segment_{std::move(segment.segment)},
      slot_bytes_{size_of(*plan_, ranks_on_node_).slot} {
  if (segment.error) {
    why_not_ = segment.error->message();  // the same on all ranks of the node
    control_->log(LogLevel::warning, fmt::format("groups inside this node use MPI: {}", why_not_));
  } else if (!segment_) {
    why_not_ = "no other rank is on this node";
  } else {
    try_direct_reads(single_copy);
  }
  if (placement_.node_count() > 1) agree_on_levels();
}

// The ranks of the node find out whether they can read each other's memory.
void SharedMemoryBackend::try_direct_reads(SingleCopy choice) {
  const std::string activity = "the reads of the memory of the node's processes";
  const std::vector<Rank> ranks = ranks_of_node(placement_, control_->rank());
  memory_ = std::make_shared<NodeMemory>(segment_.data(), ranks,
                                         placement_.local_rank(control_->rank()), choice);
  control_->monitor.wait([&] { return memory_->advance(); },
                         WaitPoint::of(RankSet::of(ranks), activity, activity),
                         control_->deadline());
}

// The nodes tell each other whether they have shared memory: all members of a group must choose the
// same transports.
void SharedMemoryBackend::agree_on_levels() {
  struct Answers {
    int own = 0, all = 0;
  };
  MpiMemory<Answers> answers;
  answers->own = ranks_on_node_ == 1 || why_not_.empty() ? 1 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Iallreduce(&answers->own, &answers->all, 1, MPI_INT, MPI_MIN,
                            control_->comm().native(), &request),
             "MPI_Iallreduce");
  answers.wait(request, control_->monitor,
               WaitPoint::of_all(control_->comm().size(), "the creation of the shared memory"),
               control_->deadline());
  all_nodes_share_memory_ = answers->all != 0;
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
  place.is_oversubscribed = !group.has_own_cores;
  place.names_of_coordinators = group.names;
  place.ranks = group.ranks;
  place.names = control_->names;
  place.processes = memory_;
  return place;
}

ShmTransport::Place SharedMemoryBackend::place_of(const GroupDescription& group) const {
  const auto number = static_cast<std::size_t>(group.number - 1);
  const std::size_t first = number * ranks_on_node_;
  const Size size = size_of(*plan_, ranks_on_node_);
  ShmTransport::Place place = members_of(group);
  place.slot_bytes = slot_bytes_;
  for (const std::int32_t local : place.locals)
    place.areas.push_back(segment_.data() + size.processes + size.rings +
                          (first + static_cast<std::size_t>(local)) * shm::Area::size(slot_bytes_));
  const std::size_t senders = senders_of(*plan_, group.families.front(), ranks_on_node_);
  if (size.rings == 0 || senders == 0) return place;
  // Each rank of the node has a place for the rings from the members of its group.
  std::byte* const rings =
      segment_.data() + size.processes + bytes_of_rings(*plan_, ranks_on_node_, number);
  add_rings(place, [&](std::size_t from, std::size_t to) {
    return rings +
           (static_cast<std::size_t>(place.locals[to]) * senders + from) * shm::Ring::size();
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
    node_of.push_back(placement_.node(rank));
    if (placement_.node(rank) == placement_.node(control_->rank())) here.push_back(rank);
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
    shape.carriers =
        std::min(shape.carriers, placement_.cores(placement_.node(rank)).value_or(shape.carriers));
  shared.levels.emplace(HierarchicalTransport::Place{
      .shape = std::move(shape), .members = {group.ranks, control_->names, group.names}});
  if (here.size() == 1) return;
  GroupDescription members = group;
  members.ranks = RankSet::of(here);
  shared.levels->inside = std::make_unique<ShmTransport>(place_of(members), shm::Limits{});
}

SharedTransport SharedMemoryBackend::make_dynamic_transport(const GroupDescription& group,
                                                            const mpi::CommunicatorView& comm,
                                                            const Recording& recording) const {
  if (group.ranks.size() == 1) return {};
  if (group.nodes > 1)
    return {nullptr, "its members are on several nodes", {}, "it was created by new_group"};
  ShmTransport::Place place = members_of(group);
  place.recording = recording;
  place.slot_bytes = largest_slot;
  const std::size_t size = shm::Area::size(place.slot_bytes);
  const std::size_t members = place.locals.size();
  const bool has_rings = group.ranks.size() <= most_members_with_rings;
  const std::size_t rings = has_rings ? members * members * shm::Ring::size() : 0;
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
  if (has_rings)
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
  NodeSegment created = std::move(
      make_node_segments(*control_, placement_,
                         {{"the creation of symmetric memory", window->stride * ranks_on_node_}})
          .front());
  SharedSegment& segment = created.segment;
  // Allocation may fail on one node only.
  if (placement_.node_count() > 1)
    all.verify("the creation of symmetric memory", created.error ? created.error->message() : "");
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
