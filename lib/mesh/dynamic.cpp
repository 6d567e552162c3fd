// SPDX-License-Identifier: BSD-3-Clause
// Groups that are created and closed while the mesh is open.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "detail/open_record.hpp"
#include "detail/state.hpp"
#include "mpi/detail/translated_ranks.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"

namespace rankmesh {
namespace {

// Opens the group's device transport. Returns null if the mesh has no devices.
std::unique_ptr<DeviceTransport> open_device(detail::MeshState& state,
                                             const detail::GroupDescription& group,
                                             const Participants& members) {
  if (state.device == nullptr) return nullptr;
  if (group.ranks.size() == 1) return state.device->open_alone(group);
  detail::DeviceOpening wanted;
  wanted.groups.push_back({.group = &group, .comm = members.comm, .options = {}});
  std::string failure;
  try {
    state.device->drain(state.deadline());
  } catch (const Error& error) {
    failure = error.message();
  }
  members.agree("the NCCL bootstrap", failure);
  return std::move(state.device->open(wanted, members).groups.front());
}

detail::Recordings recordings_of(const detail::MeshState& state,
                                 const detail::GroupDescription& group) {
  return detail::recordings_of(*state.control, group,
                               state.device != nullptr || !state.options.transports.empty());
}

std::shared_ptr<GroupCoordinator> add_dynamic(detail::MeshState& state,
                                              std::shared_ptr<detail::Connection> connection,
                                              std::unique_ptr<DeviceTransport> device) {
  connection->open_device(std::move(device));
  state.connections.push_back(connection);
  const std::string name = connection->group.name;
  return state.dynamic.emplace_back(
      detail::GroupAccess::make(name, std::move(connection), state.runtime));
}

std::string name_or_default(const std::string& name, const RankSet& ranks) {
  return name.empty() ? fmt::format("group({})", ranks.to_string(40)) : name;
}

// Returns the call in the words of the program.
std::string call_text(const RankSet& ranks, const std::string& name) {
  const bool is_named = name != name_or_default({}, ranks);
  return fmt::format("new_group({}){}", ranks.to_string(120),
                     is_named ? fmt::format(" named '{}'", name) : "");
}

// Returns the list as a set, and checks that its ranks are in the mesh.
RankSet checked(const detail::MeshState& state, std::span<const Rank> ranks,
                const std::string& name) {
  if (ranks.empty())
    throw UsageError{"new_group is called with an empty list of ranks", "list the group's members"};
  RankSet set = RankSet::of(ranks);
  const std::int64_t world = state.plan->world_size();
  if (set.highest().value() >= world)
    throw UsageError{fmt::format("new_group {}: rank {} is outside the world of {} ranks",
                                 name_or_default(name, set), set.highest().value(), world),
                     fmt::format("ranks are numbered from 0 to {}", world - 1)};
  return set;
}

std::shared_ptr<GroupCoordinator> open_dynamic(detail::MeshState& state, RankSet ranks,
                                               const std::string& given_name) {
  std::string name = name_or_default(given_name, ranks);
  // The members replace its identity when they meet.
  detail::GroupDescription group =
      detail::describe_group(std::move(name), std::move(ranks), *state.control);
  detail::SegmentCreation memory = state.shared->dynamic_memory(group);
  const auto announced = memory.begin();
  if (group.ranks.size() > 1) {
    auto [identity, number, of_first] =
        state.rendezvous.join(*state.control, group.ranks_of_mesh(), "new_group " + group.name,
                              call_text(group.ranks, group.name), announced.front());
    group.identity = std::move(identity);
    // Several groups without names may have the same ranks.
    if (given_name.empty() && number > 1)
      group.name = group.names.front() = fmt::format("{}#{}", group.name, number);
    memory.map({of_first});
  }
  detail::GroupCommunicator comm = detail::make_communicator(group, *state.control);
  // Only the members take part in what follows, so they compare their values on their own
  // communicator.
  WaitMonitor monitor{comm.view, WaitMonitor::Audience::own,
                      state.control->names.among(group.ranks), state.control.get()};
  const Participants members{comm.view, &monitor, state.control->timeout};
  detail::Recordings recordings = recordings_of(state, group);
  auto shared = state.shared->make_dynamic_transport(group, comm.view, memory, recordings.host);
  auto device = open_device(state, group, members);
  auto own = detail::open_program_transports(
      state.options, {detail::transport_group(group, comm.view, *state.control, state.options)},
      members);
  return add_dynamic(
      state,
      detail::connect(std::move(group), std::move(comm), state.options, *state.control,
                      std::move(shared), std::move(own.front()), std::move(recordings)),
      std::move(device));
}

// Returns the members of a communicator as ranks of the mesh.
std::vector<Rank> members_of(const mpi::CommunicatorView& comm,
                             const mpi::CommunicatorView& world) {
  std::vector<int> from(static_cast<std::size_t>(comm.size()));
  std::iota(from.begin(), from.end(), 0);
  const std::vector<int> to = mpi::translated_ranks(comm, from, world);
  if (std::ranges::find(to, MPI_UNDEFINED) != to.end())
    throw UsageError{"a member of the communicator is not in the mesh",
                     "adopt only communicators whose ranks all belong to the mesh"};
  return {to.begin(), to.end()};
}

}  // namespace

std::shared_ptr<GroupCoordinator> Mesh::new_group(std::span<const Rank> ranks, std::string name) {
  detail::MeshState& state = open_state("new_group");
  const detail::CallLock lock{*state.runtime};
  RankSet set = checked(state, ranks, name);
  if (!set.contains(rank()))
    throw UsageError{fmt::format("new_group {} is called on rank {}, which is not in the group",
                                 name_or_default(name, set), rank().value()),
                     "call new_group only on members of the group"};
  return detail::finding_losses(*state.runtime,
                                [&] { return open_dynamic(state, std::move(set), name); });
}

std::vector<std::shared_ptr<GroupCoordinator>> Mesh::new_groups(
    std::span<const std::vector<Rank>> groups) {
  detail::MeshState& state = open_state("new_groups");
  const detail::CallLock lock{*state.runtime};
  std::vector<RankSet> sets;  // all lists are checked before the first group is created
  for (const auto& ranks : groups) sets.push_back(checked(state, ranks, {}));
  // All ranks sort their groups by the same rule. So any two ranks create their common groups in
  // the same order, whatever the order of the arguments.
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return groups[a] < groups[b]; });
  std::vector<std::shared_ptr<GroupCoordinator>> result(groups.size());
  for (const std::size_t g : order)
    if (sets[g].contains(rank()))
      result[g] = detail::finding_losses(
          *state.runtime, [&] { return open_dynamic(state, std::move(sets[g]), {}); });
  return result;
}

std::shared_ptr<GroupCoordinator> Mesh::adopt(MPI_Comm comm, std::string name, ncclComm* nccl,
                                              NcclCalls calls) {
  detail::MeshState& state = open_state("adopt");
  if (nccl != nullptr && state.device == nullptr)
    throw NoDeviceError{fmt::format("adopt '{}' cannot use an NCCL communicator: {}", name,
                                    state.runtime->why_no_device),
                        "adopt the MPI communicator alone"};
  const detail::CallLock lock{*state.runtime};
  const mpi::CommunicatorView view{comm};
  detail::GroupDescription group = detail::describe_group(
      std::move(name), RankSet::of(members_of(view, state.control->comm())), *state.control);
  group.identity = "adopted " + group.name;
  auto device =
      nccl == nullptr ? nullptr : state.device->adopt(group, view, nccl, calls == NcclCalls::block);
  group.is_adopted = true;
  detail::Recordings recordings = recordings_of(state, group);
  // adopt() is local, so the members cannot create shared memory here.
  return add_dynamic(state,
                     detail::connect(std::move(group), {{}, view}, state.options, *state.control,
                                     {nullptr, "it was adopted"}, {.why_not = "it was adopted"},
                                     std::move(recordings)),
                     std::move(device));
}

}  // namespace rankmesh
