// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/expert_dispatcher.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "detail/expert_dispatcher_state.hpp"
#include "detail/route_planner.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using detail::refuse;
using device::DeviceBuffer;

// Throws the same MismatchError on all ranks if one of them passes another map or other options.
void verify_agreement(GroupCoordinator& group, const ExpertMap& map,
                      const ExpertDispatcherOptions& options) {
  if (map.ranks() != group.size())
    refuse(group, fmt::format("the expert map is for {} ranks", map.ranks()),
           "make a map for as many ranks as the group has");
  const auto slots = map.physical_to_logical();
  const Hash128 map_hash =
      hash_bytes({reinterpret_cast<const char*>(slots.data()), slots.size_bytes()});
  const Hash128 hash =
      hash_bytes(fmt::format("{} {} {} {} {}", to_string(map_hash), map.experts(), map.slots(),
                             options.alignment, options.capacity.value_or(0)));
  // The maxima of h and ~h are each other's complement only if all h are equal.
  std::vector<std::uint64_t> most{hash.high, hash.low, ~hash.high, ~hash.low};
  run_or_leak([&] { group.all_reduce(most, ReduceOp::max); }, most);
  if (most[0] != ~most[2] || most[1] != ~most[3])
    throw MismatchError{fmt::format("the members of '{}' pass different expert maps or options "
                                    "to their expert dispatcher",
                                    group.name()),
                        "pass the same map, alignment and capacity on every rank", false};
}

}  // namespace

ExpertDispatcher::ExpertDispatcher(GroupCoordinator& group, ExpertMap map,
                                   ExpertDispatcherOptions options)
    : state_{new State{group, std::move(map), options, {}, {}}} {
  if (options.alignment < 1 || options.capacity.value_or(1) < 1)
    refuse(group,
           fmt::format("the alignment is {}, the capacity {}", options.alignment,
                       options.capacity.value_or(1)),
           "set both to 1 or more");
  verify_agreement(group, state_->map, options);
}
ExpertDispatcher::~ExpertDispatcher() = default;
ExpertDispatcher::ExpertDispatcher(ExpertDispatcher&&) noexcept = default;
ExpertDispatcher& ExpertDispatcher::operator=(ExpertDispatcher&&) noexcept = default;

const ExpertMap& ExpertDispatcher::map() const { return state_->map; }

void ExpertDispatcher::set_map(ExpertMap map) {
  verify_agreement(state_->group, map, state_->options);
  state_->map = std::move(map);
}

ExpertRoute ExpertDispatcher::route(std::span<const std::int32_t> ids, std::int64_t top_k) {
  return plan(ids, top_k);
}

ExpertRoute ExpertDispatcher::route(DeviceSpan<const std::int32_t> ids, std::int64_t top_k,
                                    StreamRef stream) {
  (void)state_->group.native_nccl();  // throws the reason if there are no devices
  std::vector<std::int32_t> on_host(ids.size());
  device::detail::copy(on_host.data(), ids.data(), ids.size() * sizeof(std::int32_t),
                       device::detail::Direction::to_host, stream);
  ExpertRoute route = plan(on_host, top_k);
  std::vector<std::int64_t> lists;
  for (const auto* list : {&route.pack_, &route.place_, &route.unplace_, &route.sum_})
    lists.insert(lists.end(), list->begin(), list->end());
  auto uploaded = std::make_shared<ExpertRoute::OnDevice>();
  uploaded->lists = DeviceBuffer<std::int64_t>{lists.size()};
  uploaded->lists.upload(lists, stream);
  route.on_device_ = std::move(uploaded);
  return route;
}

ExpertRoute ExpertDispatcher::plan(std::span<const std::int32_t> ids, std::int64_t top_k) {
  State& s = *state_;
  detail::RoutePlanner planner{s.group, s.map, s.options, ids, top_k};
  // With a capacity every rank sends as many rows to every slot, so nothing has to be exchanged.
  std::vector<std::int64_t> to_slot = planner.rows_to_slot();
  std::vector<std::int64_t> from_rank(to_slot.size(), s.options.capacity.value_or(0));
  if (s.options.capacity)
    std::ranges::fill(to_slot, *s.options.capacity);
  else
    run_or_leak([&] { s.group.all_to_all(to_slot, from_rank); }, to_slot, from_rank);
  return std::move(planner).plan(to_slot, from_rank);
}

}  // namespace rankmesh::exchange
