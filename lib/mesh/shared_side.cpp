#include "detail/shared_side.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/agreement.hpp"
#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"

namespace rankmesh::detail {
namespace {

// Pages are taken when they are first written, so this limits addresses rather than memory.
constexpr std::size_t largest_segment = std::size_t{1} << 30;
constexpr std::size_t largest_slot = 64 << 10;
constexpr std::size_t smallest_slot = 4 << 10;

// Channels that the plan makes for the names before this one. The same on every rank.
std::size_t channels_before(const MeshPlan& plan, std::size_t family) {
  std::size_t count = 0;
  for (std::size_t f = 0; f < family; ++f) {
    if (plan.needs_creation(f)) ++count;
    if (plan.has_communicators(f)) count += plan.options(f).duplicates.size();
  }
  return count;
}

std::vector<Rank> ranks_of_node(const Placement& placement, std::int32_t node) {
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < placement.world_size(); ++r)
    if (placement.node(r) == node) ranks.emplace_back(r);
  return ranks;
}

}  // namespace

SharedSide::SharedSide(MeshState& state, mpi::Node node) : state_{state}, node_{std::move(node)} {
  state.services->advance_shared = [this] { advance(); };
  const auto members = static_cast<std::size_t>(node_.comm.view().size());
  is_crowded_ = node_.comm.view().size() > node_.cores;
  const std::size_t channels = channels_before(state.plan, state.plan.families().size());
  if (members == 1 || channels == 0) {
    why_ = "no other rank is on this node";
    return;
  }
  const auto total = [&](std::size_t slot) { return channels * members * shm::Area::size(slot); };
  slot_bytes_ = largest_slot;
  while (slot_bytes_ > smallest_slot && total(slot_bytes_) > largest_segment) slot_bytes_ /= 2;
  try {
    segment_ = SharedSegment{node_.comm.view(), total(slot_bytes_), *state.services->monitor,
                             step("the making of the node's shared memory"), state.deadline()};
  } catch (const SharedMemoryError& error) {
    why_ = error.message();  // the same on all ranks of the node
    state.log(LogLevel::warning, fmt::format("groups inside this node use MPI: {}", why_));
  }
}

SharedSide::~SharedSide() { close_windows(); }

WaitPoint SharedSide::step(const std::string& what) const {
  WaitPoint step{hash_bytes(what).low, what, {}};
  for (const Rank rank :
       ranks_of_node(state_.placement, state_.placement.node(state_.services->rank)))
    step.members.push_back(static_cast<int>(rank.value()));
  return step;
}

// Of a channel that the plan has, in the order in which the plan makes them.
std::size_t SharedSide::number_of(const Channel& channel) const {
  const std::size_t f = channel.families.front();
  std::size_t number = channels_before(state_.plan, f);
  if (channel.duplicate_key.empty()) return number;
  const auto& keys = state_.plan.options(f).duplicates;
  number += state_.plan.needs_creation(f) ? 1 : 0;
  return number +
         static_cast<std::size_t>(std::ranges::find(keys, channel.duplicate_key) - keys.begin());
}

void SharedSide::give_transport(Channel& channel) {
  std::string why = why_;
  if (channel.ranks.size() == 1 || channel.families.empty()) return;
  if (channel.nodes > 1) why = "its members are on several nodes";
  if (!why.empty()) {
    channel.absent.emplace("shm", std::move(why));
    return;
  }
  const auto members = static_cast<std::size_t>(node_.comm.view().size());
  const std::size_t first = number_of(channel) * members;
  ShmTransport::Place place;
  for (const Rank rank : channel.ranks) {
    const std::int32_t local = state_.placement.local_rank(rank);
    if (rank == state_.services->rank) place.self = static_cast<int>(place.areas.size());
    place.areas.push_back(segment_.data() +
                          (first + static_cast<std::size_t>(local)) * shm::Area::size(slot_bytes_));
    place.locals.push_back(local);
  }
  place.group = &channel;
  place.slot_bytes = slot_bytes_;
  place.is_crowded = is_crowded_;
  // The transport belongs to the channel, and is used by coordinators that hold both.
  Channel* const of = &channel;
  MeshServices* const services = state_.services.get();
  auto patience = [of, services](const std::function<bool()>& done, const Call& call,
                                 std::uint64_t number) {
    WaitPoint step;
    step.key =
        hash_bytes(fmt::format("{}|{}|shm|{}", of->identity, of->ranks.to_string(), number)).low;
    step.activity = fmt::format("{}.{} (step {} of its group in shared memory)", of->name,
                                to_string(call.operation), number);
    for (const Rank rank : of->ranks) step.members.push_back(static_cast<int>(rank.value()));
    try {
      services->monitor->wait(
          [&] {
            if (done()) return true;
            if (services->unusual != 0) services->advance_shared();
            return false;
          },
          step, Deadline{services->deadline.value_or(of->timeout)});
    } catch (const Error& error) {
      of->broken = error.message();
      throw;
    }
  };
  auto transport = std::make_unique<ShmTransport>(std::move(place), shm::Limits{},
                                                  std::move(patience), services->unusual);
  transports_.emplace_back(&channel, transport.get());
  channel.in_place = transport.get();
  channel.transports.push_back(std::move(transport));
}

void SharedSide::advance() {
  for (const auto& [channel, transport] : transports_) transport->advance();
}

std::shared_ptr<const SymmetricWindow> SharedSide::allocate(
    std::size_t bytes, const std::vector<std::string_view>& names) {
  Agreement agreement;
  agreement.add("bytes of symmetric memory", fmt::format("{}", bytes));
  agreement.add("names of symmetric memory", fmt::format("{}", fmt::join(names, ",")));
  agreement.settle(state_.control.view(), *state_.services->monitor,
                   "the allocation of symmetric memory", state_.deadline());
  // Parts begin at different places within a page, so that equal indices of many ranks do not
  // compete for the same sets of a cache.
  const std::size_t page = 4096;
  auto window = std::make_shared<SymmetricWindow>();
  window->stride = (bytes + page - 1) / page * page + 256;
  window->bytes = bytes;
  window->local_rank = state_.services->local_rank;
  Agreement outcome;  // a node may fail where others do not
  SharedSegment segment;
  try {
    segment = SharedSegment{
        node_.comm.view(), window->stride * static_cast<std::size_t>(node_.comm.view().size()),
        *state_.services->monitor, step("the making of symmetric memory"), state_.deadline()};
  } catch (const SharedMemoryError& error) {
    if (state_.placement.node_count() == 1) throw;
    outcome.fail(error.message());
  }
  if (state_.placement.node_count() > 1)
    outcome.settle(state_.control.view(), *state_.services->monitor,
                   "the making of symmetric memory", state_.deadline());
  window->base = segment.data();
  for (const std::string_view name : names)
    for (const auto& [channel, transport] : transports_)
      if (std::ranges::any_of(channel->families, [&](std::size_t f) {
            return state_.plan.families()[f].name() == name;
          }))
        window->groups.push_back(channel);
  allocations_.push_back({std::move(segment), window});
  return window;
}

void SharedSide::close_windows() noexcept {
  for (Allocation& allocation : allocations_) allocation.window->is_open = false;
  allocations_.clear();
}

void SharedSide::close() {
  transports_.clear();
  segment_ = {};
  node_.comm.free();
}

}  // namespace rankmesh::detail
