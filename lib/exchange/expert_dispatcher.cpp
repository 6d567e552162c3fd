// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/exchange/expert_dispatcher.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/agree.hpp"
#include "detail/expert_dispatcher_state.hpp"
#include "detail/route_planner.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {
namespace {

using detail::DispatcherCall;

// Throws a UsageError if the arguments of this rank are invalid.
void validate(const DispatcherCall& by, const ExpertMap& map,
              const ExpertDispatcherOptions& options) {
  if (options.alignment < 1 || options.capacity.value_or(1) < 1)
    by.refuse(fmt::format("the alignment is {}, the capacity {}", options.alignment,
                          options.capacity.value_or(1)),
              "set both to 1 or more");
  if (map.ranks() != by.group.size())
    by.refuse(fmt::format("the expert map is for {} ranks", map.ranks()),
              "make a map for as many ranks as the group has");
}

detail::Arguments arguments_of(const DispatcherCall& by, const ExpertMap& map,
                               const ExpertDispatcherOptions& options) {
  const std::string capacity =
      options.capacity ? fmt::format("capacity {}", *options.capacity) : "no capacity";
  detail::Arguments arguments{
      by.name(),
      {fmt::format("{} experts in {} slots, alignment {}, {}", map.experts(), map.slots(),
                   options.alignment, capacity)}};
  for (const std::int32_t expert : map.physical_to_logical())
    arguments.entries.push_back(
        fmt::format("slot {} holds expert {}", arguments.entries.size() - 1, expert));
  return arguments;
}

// Throws on all ranks if the ranks pass different maps or options, or if the arguments of one rank
// are invalid.
void verify_agreement(std::string_view function, GroupCoordinator& group, const ExpertMap& map,
                      const ExpertDispatcherOptions& options) {
  const DispatcherCall by{group, function};
  const detail::Arguments arguments = arguments_of(by, map, options);
  detail::agree(group, hash_of(arguments),
                {detail::UserFunction::expert_dispatcher, [&] { return arguments; },
                 "pass the same map, alignment and capacity on every rank",
                 detail::failure_of([&] { validate(by, map, options); })});
}

}  // namespace

ExpertDispatcher::ExpertDispatcher(GroupCoordinator& group, ExpertMap map,
                                   ExpertDispatcherOptions options)
    : state_{new State{.group = group,
                       .life = rankmesh::detail::GroupLife{group},
                       .map = std::move(map),
                       .options = options}} {
  verify_agreement("", group, state_->map, options);
}
ExpertDispatcher::~ExpertDispatcher() = default;
ExpertDispatcher::ExpertDispatcher(ExpertDispatcher&&) noexcept = default;
ExpertDispatcher& ExpertDispatcher::operator=(ExpertDispatcher&&) noexcept = default;

ExpertDispatcher::State& ExpertDispatcher::state() const {
  state_->life.require("ExpertDispatcher");
  return *state_;
}

const ExpertMap& ExpertDispatcher::map() const { return state_->map; }

void ExpertDispatcher::set_map(ExpertMap map) {
  State& s = state();
  verify_agreement("::set_map", s.group, map, s.options);
  s.map = std::move(map);
}

ExpertRoute ExpertDispatcher::route(std::span<const std::int32_t> ids, std::int64_t top_k) {
  return plan(ids, top_k);
}

ExpertRoute ExpertDispatcher::route(DeviceSpan<const std::int32_t> ids, std::int64_t top_k,
                                    StreamRef stream) {
  State& s = state();
  (void)s.group.native_nccl();  // throws the reason if there are no devices
  using Direction = device::detail::Direction;
  std::vector<std::int32_t> on_host(ids.size());
  device::detail::copy(on_host.data(), ids.data(), std::span{on_host}.size_bytes(),
                       Direction::to_host, stream);
  ExpertRoute route = plan(on_host, top_k);
  std::vector<std::int64_t> lists;
  for (const auto* list : {&route.pack_, &route.place_, &route.unplace_, &route.sum_})
    lists.insert(lists.end(), list->begin(), list->end());
  auto memory = s.routes->take(lists.size(), stream);
  device::detail::copy(memory.get(), lists.data(), std::span{lists}.size_bytes(),
                       Direction::to_device, stream);
  route.on_device_ = std::make_shared<ExpertRoute::OnDevice>(std::move(memory));
  return route;
}

ExpertRoute ExpertDispatcher::plan(std::span<const std::int32_t> ids, std::int64_t top_k) {
  State& s = state();
  std::optional<detail::RoutePlanner> planner;
  const DispatcherCall function = s.call_of("::route");
  const std::exception_ptr failure =
      detail::failure_of([&] { planner.emplace(function, s.map, s.options, ids, top_k); });
  const auto slots = static_cast<std::size_t>(s.map.slots());
  if (s.options.capacity) {
    // Every rank sends the same number of rows to every slot, so no numbers have to be exchanged.
    if (failure != nullptr) std::rethrow_exception(failure);
    const std::vector<std::int64_t> rows(slots, *s.options.capacity);
    return std::move(*planner).plan(rows, rows);
  }
  // A rank that has failed sends -1 for each slot, so every rank learns of the failure.
  std::vector<std::int64_t> to_slot(slots, -1);
  if (planner) to_slot = planner->rows_to_slot();
  std::vector<std::int64_t> from_rank(slots);
  const rankmesh::detail::CalledBy by{rankmesh::detail::GroupAccess::runtime(s.group),
                                      detail::UserFunction::expert_dispatcher};
  run_or_leak([&] { s.group.all_to_all(to_slot, from_rank); }, to_slot, from_rank);
  if (std::ranges::find(from_rank, -1) == from_rank.end())
    return std::move(*planner).plan(to_slot, from_rank);
  const auto describe = [&] {
    return detail::Arguments{function.name(), {fmt::format("{} ids, top-{}", ids.size(), top_k)}};
  };
  detail::throw_difference(s.group, {detail::UserFunction::expert_dispatcher, describe,
                                     "fix the arguments of the rank that failed", failure});
}

}  // namespace rankmesh::exchange
